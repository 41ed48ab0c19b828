//! Reads the files of a module's directory, and builds the module from them.

use std::sync::Arc;

use addrs::program::{Mode, OPENTOFU_VERSION};
use files::io_reason;
use syntax::ast::Body;
use syntax::{Diagnostic, Range};

use super::Loader;
use super::file_kind::FileKind;
use crate::files::join;
use crate::losses::{Header, broken_parts, headers, names_in_text, surrounds};
use crate::model::{Losses, Module, ModuleFile};
use crate::version::{Constraint, Version};
use crate::{assemble, decode, parse};

/// The files of a module, parsed.
#[derive(Default)]
struct Parsed {
    files: Vec<ModuleFile>,
    bodies: Vec<(FileKind, Arc<Body>)>,
    losses: Losses,
}

/// A version constraint of a module that the version of this program does not satisfy.
struct Unmet {
    constraint: Constraint,
    /// True if the constraint is for OpenTofu.
    opentofu: bool,
}

impl Loader<'_> {
    /// Loads the module in a directory.
    pub(super) fn directory(&mut self, dir: &str) -> std::io::Result<Arc<Module>> {
        // Several calls of one directory share its module, so that its problems are reported once.
        if let Some(module) = self.modules.get(dir) {
            return Ok(module.clone());
        }
        let before = self.diagnostics.len();
        let Parsed {
            files,
            bodies,
            mut losses,
        } = self.parse_directory(dir)?;
        let parsed = self.diagnostics.len();
        // The versions are checked before anything is decoded: a configuration for another version may be
        // invalid for this one.
        let unmet = self.unmet_versions(&bodies);
        let mut module = if unmet.is_empty() {
            let headers: Vec<Header> = bodies.iter().flat_map(|(_, body)| headers(body)).collect();
            let module = self.decode_directory(dir, files, bodies);
            let errors = self.diagnostics.0.iter().skip(before).filter(|d| d.is_error());
            self.note_losses(
                &headers,
                errors.filter_map(|d| d.subject.clone()).collect(),
                &mut losses,
            );
            module
        } else {
            self.report_unmet(unmet);
            Module {
                source_dir: dir.into(),
                files,
                refused: true,
                ..Module::default()
            }
        };
        // Errors inside parts that could not be parsed are dropped: a missing or unexpected argument may only be a
        // consequence of the syntax error.
        let mut decoded = self.diagnostics.0.split_off(parsed);
        decoded.retain(|d| {
            !d.subject
                .as_ref()
                .is_some_and(|s| losses.broken.iter().any(|b| surrounds(b, s)))
        });
        self.diagnostics.extend(decoded);
        module.losses = losses;
        let module = Arc::new(module);
        self.modules.insert(dir.to_owned(), module.clone());
        Ok(module)
    }

    /// Reads and parses the files of a module.
    fn parse_directory(&mut self, dir: &str) -> std::io::Result<Parsed> {
        let (mut names, left_out) = super::listing::listed(self.files, dir)?;
        names.retain(|(kind, _)| !kind.query || self.queries.as_deref() == Some(dir));
        self.left_out.extend(left_out.iter().map(|name| join(dir, name)));
        // The files are sorted, so that results do not depend on the order in which the file system lists
        // files.
        names.sort_by(|(_, a), (_, b)| a.cmp(b));
        let mut out = Parsed::default();
        for (kind, name) in names {
            let path = join(dir, &name);
            let content: Arc<[u8]> = match self.files.read(&path) {
                Ok(content) => content.into(),
                Err(error) => {
                    self.diagnostics.push(Diagnostic::error(
                        "Failed to read file",
                        format!("The file {path} cannot be read: {}.", io_reason(&error)),
                    ));
                    continue;
                }
            };
            // Invalid text is replaced, because diagnostics show lines of files that are not UTF-8, too.
            self.sources
                .insert(path.as_str(), String::from_utf8_lossy(&content).as_ref());
            let (body, problems) = if kind.json {
                let (body, mut problems) = syntax::json::parse_file(&path, &content);
                let body = if kind.query {
                    decode::resolve_query(body, &mut problems)
                } else {
                    decode::resolve(body, &mut problems)
                };
                (body, problems)
            } else {
                parse::file(&path, &content)
            };
            if problems.has_errors() {
                out.losses.broken.extend(broken_parts(&body, &problems));
                names_in_text(&String::from_utf8_lossy(&content), &mut out.losses.names);
            }
            self.diagnostics.extend(problems);
            out.bodies.push((kind, body));
            out.files.push(ModuleFile {
                name: name.into(),
                content,
            });
        }
        Ok(out)
    }

    /// Returns the constraints that this version of the tool does not meet. Constraints in override files take
    /// precedence. Constraints in a `.tofu` file are compared with OpenTofu's version, those in a `.tf` file with
    /// Terraform's. In the language of OpenTofu, the constraints of `language` blocks are checked, too.
    fn unmet_versions(&self, bodies: &[(FileKind, Arc<Body>)]) -> Vec<Unmet> {
        let required = |overriding: bool| -> Vec<Unmet> {
            let of_kind = bodies
                .iter()
                .filter(|(kind, _)| !kind.query && kind.overriding == overriding);
            // In the mode of OpenTofu, constraints in Terraform's files are ignored: they are about versions of
            // Terraform.
            let heeded = of_kind.filter(|(kind, _)| kind.opentofu || !Mode::current().is_opentofu());
            let all = heeded.flat_map(|(kind, body)| {
                let of_tool = |constraint| Unmet {
                    constraint,
                    opentofu: kind.opentofu,
                };
                decode::required_versions(body).into_iter().map(of_tool)
            });
            all.collect()
        };
        let compatible = || {
            let bodies = bodies.iter().filter(|(kind, _)| !kind.query && !kind.overriding);
            let constraints = bodies.flat_map(|(_, body)| decode::compatible_versions(body));
            constraints.map(|constraint| Unmet {
                constraint,
                opentofu: true,
            })
        };
        let mut unmet = required(true);
        if unmet.is_empty() {
            unmet = required(false);
        }
        if Mode::current().has_opentofu() {
            unmet.extend(compatible());
        }
        unmet.retain(|unmet| !self.allows_tool(unmet));
        unmet
    }

    fn report_unmet(&mut self, all: Vec<Unmet>) {
        for unmet in all {
            let (summary, tool) = match unmet.opentofu {
                true => ("Incompatible module", "OpenTofu"),
                false => ("Unsupported Terraform Core version", "Terraform"),
            };
            self.diagnostics.push(
                Diagnostic::error(
                    summary,
                    format!(
                        "This configuration asks for a version \"{}\" of {tool}, and this tool answers as version {}. \
                         Use another release, or change the constraint if you know that this one will do.",
                        unmet.constraint.text,
                        self.version_of(unmet.opentofu)
                    ),
                )
                .at(&unmet.constraint.range),
            );
        }
    }

    fn decode_directory(&mut self, dir: &str, files: Vec<ModuleFile>, bodies: Vec<(FileKind, Arc<Body>)>) -> Module {
        let (mut primary, mut overriding) = (Vec::new(), Vec::new());
        for (kind, body) in bodies {
            if kind.query {
                primary.push(decode::query_file(body, &mut self.diagnostics));
                continue;
            }
            let blocks = decode::file(body, kind.overriding, &mut self.diagnostics);
            if kind.overriding {
                overriding.push(blocks)
            } else {
                primary.push(blocks)
            }
        }
        assemble::module(dir, files, primary, overriding, &mut self.diagnostics)
    }

    /// Records the names that blocks with errors may declare, and whether such a block makes provider configurations
    /// doubtful.
    fn note_losses(&mut self, headers: &[Header], errors: Vec<Range>, losses: &mut Losses) {
        for place in errors {
            let at = headers.iter().find(|h| surrounds(&h.range, &place));
            // An error outside of any block may be in the remains of a provider block.
            let ty = at.map_or("provider", |h| &*h.ty);
            self.providers_in_doubt |= matches!(ty, "terraform" | "provider" | "module");
            losses
                .names
                .extend(at.into_iter().flat_map(|h| h.names.iter().cloned()));
        }
    }

    /// Returns true if a constraint allows the tool's version. The pre-release part is ignored: 1.12.0-beta1 counts as
    /// 1.12.0.
    fn allows_tool(&self, unmet: &Unmet) -> bool {
        let version = Version::parse_lenient(self.version_of(unmet.opentofu));
        version.map_or(true, |v| unmet.constraint.allows(&v.core()))
    }

    /// Returns the tool's version that constraints are compared with.
    fn version_of(&self, opentofu: bool) -> &str {
        match opentofu {
            true => OPENTOFU_VERSION,
            false => self.options.tool_version,
        }
    }
}
