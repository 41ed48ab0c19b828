//! Copying over WinRM. The protocol has no file transfer, so commands append Base64 text to a temporary file, which PowerShell decodes.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{Ran, Request, Winrm};
use crate::files::{Content, Entry, EntryKind, name_of, tree};
use crate::words::quoted_for_powershell;
use crate::{Error, Result};

/// Number of bytes of a file in one command. They become 7,600 characters of Base64; the command interpreter of Windows accepts fewer than
/// 8,192 characters in a line.
const CHUNK: usize = 5700;

/// Number of commands after which a shell is replaced. Services limit the commands of a shell; 15 is the lowest known limit.
const COMMANDS: usize = 15;

/// File that the Finder of macOS creates. Terraform does not copy it either.
const SKIPPED: &str = ".DS_Store";

/// Shell that is replaced after [`COMMANDS`] commands.
struct Shells {
    current: Option<(String, usize)>,
}

impl Shells {
    async fn run(&mut self, winrm: &mut Winrm, command: &str) -> Result<Ran> {
        if self.current.as_ref().is_some_and(|(_, count)| *count >= COMMANDS) {
            self.end(winrm).await;
        }
        let (shell, count) = match self.current.take() {
            Some(current) => current,
            None => (winrm.create().await?, 0),
        };
        let result = winrm.run_quietly(&shell, command).await;
        self.current = Some((shell, count + 1));
        result
    }

    async fn end(&mut self, winrm: &mut Winrm) {
        if let Some((shell, _)) = self.current.take() {
            drop(winrm.ask(&Request::Delete { shell: &shell }).await);
        }
    }
}

pub async fn file(winrm: &mut Winrm, path: &str, content: Content) -> Result<()> {
    let mut shells = Shells { current: None };
    let result = one(&mut shells, winrm, path, content).await;
    shells.end(winrm).await;
    result
}

/// Copies a directory into another one, or only its contents.
pub async fn directory(winrm: &mut Winrm, destination: &str, source: &Path, contents_only: bool) -> Result<()> {
    let mut target = destination.trim_end_matches(['/', '\\']).to_owned();
    if !contents_only {
        target = format!("{target}/{}", name_of(source)?);
    }
    let mut files = Vec::new();
    collect(&target, tree(source).await?, &mut files);
    let mut shells = Shells { current: None };
    let mut result = Ok(());
    for (path, content) in files {
        result = one(&mut shells, winrm, &path, content).await;
        if result.is_err() {
            break;
        }
    }
    shells.end(winrm).await;
    result
}

fn collect(target: &str, entries: Vec<Entry>, files: &mut Vec<(String, Content)>) {
    for entry in entries {
        let path = format!("{target}/{}", entry.name);
        match entry.kind {
            EntryKind::File(_) if entry.name == SKIPPED => {}
            EntryKind::File(file) => files.push((path, Content::File(file))),
            EntryKind::Directory(inner) => collect(&path, inner, files),
        }
    }
}

async fn one(shells: &mut Shells, winrm: &mut Winrm, path: &str, content: Content) -> Result<()> {
    // A new name for each file, so that copies by other provisioners at the same time do not use the same file.
    let name = format!("winrmcp-{}.tmp", uuid::Uuid::new_v4());
    let (mut reading, _) = content.open(&winrm.progress).await?;
    loop {
        let (next, block) = reading.block(CHUNK).await?;
        reading = next;
        if block.is_empty() {
            break;
        }
        // The space before `>>` is necessary: without it, a digit at the end would be read as the number of a stream.
        let command = format!("echo {} >> \"%TEMP%\\{name}\"", BASE64.encode(&block));
        let ran = shells.run(winrm, &command).await?;
        ran.well("upload operation")?;
    }
    let ran = shells.run(winrm, &powershell(&decoder(&name, path))).await?;
    ran.well("restoring the file")
}

impl Ran {
    fn well(&self, what: &str) -> Result<()> {
        if self.status == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&self.output[1]).trim().to_owned();
        // Some programs print their errors to standard output.
        let said = match said.as_str() {
            "" => String::from_utf8_lossy(&self.output[0]).trim().to_owned(),
            _ => said,
        };
        Err(Error::fatal(format!(
            "{what} returned code={}{}{said}",
            self.status,
            if said.is_empty() { "" } else { ": " }
        )))
    }
}

/// Returns the script that decodes the temporary file to its destination, and removes it.
fn decoder(name: &str, path: &str) -> String {
    // SilentlyContinue keeps PowerShell from sending progress bars as XML on standard error.
    let path = quoted_for_powershell(path);
    format!(
        "$ProgressPreference = 'SilentlyContinue'
$ErrorActionPreference = 'Stop'
$encoded = Join-Path $env:TEMP '{name}'
try {{
  $target = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath({path})
  if (Test-Path -LiteralPath $target -PathType Container) {{ throw \"$target is a directory\" }}
  $parent = [IO.Path]::GetDirectoryName($target)
  if ($parent) {{ [void][IO.Directory]::CreateDirectory($parent) }}
  $writer = [IO.File]::Create($target)
  try {{
    if (Test-Path -LiteralPath $encoded) {{
      $reader = [IO.File]::OpenText($encoded)
      try {{
        while ($null -ne ($line = $reader.ReadLine())) {{
          $bytes = [Convert]::FromBase64String($line)
          $writer.Write($bytes, 0, $bytes.Length)
        }}
      }} finally {{ $reader.Dispose() }}
    }}
  }} finally {{ $writer.Dispose() }}
}} catch {{
  [Console]::Error.WriteLine($_.Exception.Message)
  exit 1
}} finally {{
  if (Test-Path -LiteralPath $encoded) {{ Remove-Item -Force -LiteralPath $encoded }}
}}
exit 0
"
    )
}

/// Returns the command that runs a script.
fn powershell(script: &str) -> String {
    // An encoded script needs no quoting for the command interpreter. PowerShell expects it in UTF-16.
    let bytes: Vec<u8> = script.encode_utf16().flat_map(u16::to_le_bytes).collect();
    format!(
        "powershell.exe -NoProfile -NonInteractive -ExecutionPolicy Bypass -EncodedCommand {}",
        BASE64.encode(bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_fit_into_a_line() {
        let name = format!("winrmcp-{}.tmp", uuid::Uuid::nil());
        let longest = format!("echo {} >> \"%TEMP%\\{name}\"", BASE64.encode([0; CHUNK]));
        assert!(longest.len() < 8000, "{}", longest.len());
        let decode = powershell(&decoder(&name, &"x".repeat(260)));
        assert!(decode.len() < 8000, "{}", decode.len());
        assert!(decoder(&name, "C:/it's").contains("'C:/it''s'"));
    }
}
