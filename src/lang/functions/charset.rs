//! Character encodings by their IANA names, for `textencodebase64` and `textdecodebase64`.
//!
//! A library has the encodings of the web. Code pages of personal computers and mainframes are in the tables at the
//! end.

use encoding_rs::Encoding as Web;

/// Conversion between text and bytes.
#[derive(Clone, Copy)]
enum Scheme {
    Ascii,
    Utf8,
    /// Read as a byte order mark declares, or as big-endian; written as big-endian with a mark.
    Utf16,
    Utf16Be,
    Utf16Le,
    /// The first 256 characters of Unicode, with some replaced.
    Latin(&'static [(u8, char)]),
    /// ASCII, and a table for the upper half of the bytes, with some characters replaced.
    Upper(&'static str, &'static [(u8, char)]),
    /// A table of all 256 characters, with some replaced.
    Whole(&'static str, &'static [(u8, char)]),
    /// Chinese characters in seven bits, between `~{` and `~}`.
    Hz,
    Web(&'static Web),
}

pub(super) struct Encoding {
    /// Preferred name.
    pub(super) name: &'static str,
    /// All of its names in lower case, separated by blanks.
    aliases: &'static str,
    scheme: Scheme,
}

const fn encoding(name: &'static str, aliases: &'static str, scheme: Scheme) -> Encoding {
    Encoding { name, aliases, scheme }
}

/// Finds an encoding by name, ignoring case.
pub(super) fn find(name: &str) -> Option<&'static Encoding> {
    let name = name.trim().to_lowercase();
    // In the table, blanks separate names, so no name contains one.
    if name.is_empty() || name.contains(' ') {
        return None;
    }
    ENCODINGS.iter().find(|e| e.aliases.split(' ').any(|a| a == name))
}

impl Encoding {
    /// Encodes a text; `None` if a character has no code.
    pub(super) fn encode(&self, text: &str) -> Option<Vec<u8>> {
        match self.scheme {
            Scheme::Ascii => text.is_ascii().then(|| text.into()),
            Scheme::Utf8 => Some(text.into()),
            Scheme::Utf16 => Some(
                [0xfe, 0xff]
                    .into_iter()
                    .chain(text.encode_utf16().flat_map(u16::to_be_bytes))
                    .collect(),
            ),
            Scheme::Utf16Be => Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Scheme::Utf16Le => Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Scheme::Hz => encode_hz(text),
            // The web's tables map unused bytes to control characters beyond ASCII, while IANA's leave them
            // undefined.
            Scheme::Web(web) if web.is_single_byte() && text.chars().any(is_high_control) => None,
            Scheme::Web(web) => encode_web(web, text),
            Scheme::Latin(_) | Scheme::Upper(..) | Scheme::Whole(..) => {
                let table = self.table();
                let byte = |c: char| table.iter().position(|t| *t == c).and_then(|i| u8::try_from(i).ok());
                text.chars()
                    .map(|c| {
                        // The tables of mainframes assign other bytes to the ASCII characters, so the table is
                        // consulted even for these.
                        if c.is_ascii() && table[c as usize] == c {
                            u8::try_from(c).ok()
                        } else {
                            byte(c)
                        }
                    })
                    .collect()
            }
        }
    }

    /// Decodes bytes; `None` if some are not defined.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<String> {
        let text = match self.scheme {
            Scheme::Ascii | Scheme::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Scheme::Utf16 => match bytes {
                [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
                [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
                _ => utf16(bytes, u16::from_be_bytes),
            },
            Scheme::Utf16Be => utf16(bytes, u16::from_be_bytes),
            Scheme::Utf16Le => utf16(bytes, u16::from_le_bytes),
            Scheme::Hz => return decode_hz(bytes),
            Scheme::Web(web) => {
                let text = web.decode_without_bom_handling(bytes).0;
                if web.is_single_byte() && text.chars().any(is_high_control) {
                    return None;
                }
                text.into_owned()
            }
            Scheme::Latin(_) | Scheme::Upper(..) | Scheme::Whole(..) => {
                let table = self.table();
                bytes.iter().map(|b| table[usize::from(*b)]).collect()
            }
        };
        // Both encodings share the conversion above, but ASCII has only 128 characters.
        let text = match (self.scheme, text.is_ascii()) {
            (Scheme::Ascii, false) => return None,
            _ => text,
        };
        (!text.contains(char::REPLACEMENT_CHARACTER)).then_some(text)
    }

    /// Builds the table of characters by byte.
    fn table(&self) -> [char; 256] {
        let mut out = [char::REPLACEMENT_CHARACTER; 256];
        for (byte, place) in (0u8..=255).zip(&mut out) {
            *place = char::from(byte);
        }
        let (from, upper, replaced) = match self.scheme {
            Scheme::Latin(replaced) => (256, "", replaced),
            Scheme::Upper(upper, replaced) => (128, upper, replaced),
            Scheme::Whole(all, replaced) => (0, all, replaced),
            _ => (256, "", [].as_slice()),
        };
        for (place, c) in out.iter_mut().skip(from).zip(upper.chars()) {
            *place = c;
        }
        for (byte, c) in replaced {
            out[usize::from(*byte)] = *c;
        }
        out
    }
}

fn is_high_control(c: char) -> bool {
    matches!(c, '\u{80}'..='\u{9f}')
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let mut units: Vec<u16> = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
    if bytes.len() % 2 == 1 {
        // An incomplete unit at the end is invalid, and becomes the replacement character.
        units.push(0xfffd);
    }
    String::from_utf16_lossy(&units)
}

fn encode_web(web: &'static Web, text: &str) -> Option<Vec<u8>> {
    let mut encoder = web.new_encoder();
    let mut out = Vec::with_capacity(encoder.max_buffer_length_from_utf8_without_replacement(text.len())?);
    match encoder
        .encode_from_utf8_to_vec_without_replacement(text, &mut out, true)
        .0
    {
        encoding_rs::EncoderResult::InputEmpty => Some(out),
        _ => None,
    }
}

fn encode_hz(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut chinese = false;
    let mut buffer = [0; 4];
    for c in text.chars() {
        if c == '~' {
            // A tilde begins an escape in this encoding, so it is doubled.
            out.extend(b"~~");
            continue;
        }
        if c.is_ascii() {
            if chinese {
                out.extend(b"~}");
                chinese = false;
            }
            out.push(u8::try_from(c).ok()?);
            continue;
        }
        // HZ is GB 2312 in seven bits, and GBK contains GB 2312 in this range of bytes.
        let pair = encode_web(encoding_rs::GBK, c.encode_utf8(&mut buffer))?;
        let [first @ 0xa1..=0xf7, second @ 0xa1..=0xfe] = pair[..] else {
            return None;
        };
        if !chinese {
            out.extend(b"~{");
            chinese = true;
        }
        out.extend([first & 0x7f, second & 0x7f]);
    }
    Some(out)
}

fn decode_hz(bytes: &[u8]) -> Option<String> {
    let mut out = String::new();
    let mut chinese = false;
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'~', [b'~', after @ ..]) => {
                out.push('~');
                rest = after;
            }
            (b'~', [b'{', after @ ..]) => {
                chinese = true;
                rest = after;
            }
            (b'~', [b'}', after @ ..]) => {
                chinese = false;
                rest = after;
            }
            // A tilde at the end of a line continues it.
            (b'~', [b'\n', after @ ..]) => rest = after,
            (b'~', _) => return None,
            (0x80.., _) => return None,
            (first, [second, after @ ..]) if chinese => {
                let pair = [first | 0x80, second | 0x80];
                let text = encoding_rs::GBK.decode_without_bom_handling_and_without_replacement(&pair)?;
                out.push_str(&text);
                rest = after;
            }
            (_, []) if chinese => return None,
            (first, _) => out.push(char::from(*first)),
        }
    }
    Some(out)
}

const ENCODINGS: &[Encoding] = &[
    encoding("Big5", "big5 csbig5", Scheme::Web(encoding_rs::BIG5)),
    encoding("EUC-KR", "cseuckr euc-kr", Scheme::Web(encoding_rs::EUC_KR)),
    encoding(
        "Extended_UNIX_Code_Packed_Format_for_Japanese",
        "cseucpkdfmtjapanese euc-jp extended_unix_code_packed_format_for_japanese",
        Scheme::Web(encoding_rs::EUC_JP),
    ),
    encoding("GB18030", "csgb18030 gb18030", Scheme::Web(encoding_rs::GB18030)),
    encoding(
        "GBK",
        "cp936 csgbk gbk ms936 windows-936",
        Scheme::Web(encoding_rs::GBK),
    ),
    encoding("HZ-GB-2312", "hz-gb-2312", Scheme::Hz),
    encoding(
        "IBM00858",
        "ccsid00858 cp00858 csibm00858 ibm00858 pc-multilingual-850+euro",
        Scheme::Upper(IBM850, &[(0xd5, '€')]),
    ),
    encoding(
        "IBM01140",
        "ccsid01140 cp01140 csibm01140 ebcdic-us-37+euro ibm01140",
        Scheme::Whole(IBM037, &[(0x9f, '€')]),
    ),
    encoding(
        "IBM037",
        "cp037 csibm037 ebcdic-cp-ca ebcdic-cp-nl ebcdic-cp-us ebcdic-cp-wt ibm037",
        Scheme::Whole(IBM037, &[]),
    ),
    encoding(
        "IBM1047",
        "csibm1047 ibm-1047 ibm1047",
        Scheme::Whole(IBM037, OPEN_SYSTEMS),
    ),
    encoding(
        "IBM437",
        "437 cp437 cspc8codepage437 ibm437",
        Scheme::Upper(IBM437, &[]),
    ),
    encoding(
        "IBM850",
        "850 cp850 cspc850multilingual ibm850",
        Scheme::Upper(IBM850, &[]),
    ),
    encoding("IBM852", "852 cp852 cspcp852 ibm852", Scheme::Upper(IBM852, &[])),
    encoding("IBM855", "855 cp855 csibm855 ibm855", Scheme::Upper(IBM855, &[])),
    encoding("IBM860", "860 cp860 csibm860 ibm860", Scheme::Upper(IBM860, &[])),
    encoding(
        "IBM862",
        "862 cp862 cspc862latinhebrew ibm862",
        Scheme::Upper(IBM862, &[]),
    ),
    encoding("IBM863", "863 cp863 csibm863 ibm863", Scheme::Upper(IBM863, &[])),
    encoding("IBM865", "865 cp865 csibm865 ibm865", Scheme::Upper(IBM865, &[])),
    encoding("IBM866", "866 cp866 csibm866 ibm866", Scheme::Web(encoding_rs::IBM866)),
    encoding(
        "ISO-2022-JP",
        "csiso2022jp iso-2022-jp",
        Scheme::Web(encoding_rs::ISO_2022_JP),
    ),
    encoding(
        "ISO-8859-10",
        "csisolatin6 iso-8859-10 iso-ir-157 iso_8859-10:1992 l6 latin6",
        Scheme::Web(encoding_rs::ISO_8859_10),
    ),
    encoding(
        "ISO-8859-13",
        "csiso885913 iso-8859-13",
        Scheme::Web(encoding_rs::ISO_8859_13),
    ),
    encoding(
        "ISO-8859-14",
        "csiso885914 iso-8859-14 iso-celtic iso-ir-199 iso_8859-14 iso_8859-14:1998 l8 latin8",
        Scheme::Web(encoding_rs::ISO_8859_14),
    ),
    encoding(
        "ISO-8859-15",
        "csiso885915 iso-8859-15 iso_8859-15 latin-9",
        Scheme::Web(encoding_rs::ISO_8859_15),
    ),
    encoding(
        "ISO-8859-16",
        "csiso885916 iso-8859-16 iso-ir-226 iso_8859-16 iso_8859-16:2001 l10 latin10",
        Scheme::Web(encoding_rs::ISO_8859_16),
    ),
    encoding(
        "ISO_8859-1:1987",
        "cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso_8859-1 iso_8859-1:1987 l1 latin1",
        Scheme::Latin(&[]),
    ),
    encoding(
        "ISO_8859-2:1987",
        "csisolatin2 iso-8859-2 iso-ir-101 iso_8859-2 iso_8859-2:1987 l2 latin2",
        Scheme::Web(encoding_rs::ISO_8859_2),
    ),
    encoding(
        "ISO_8859-3:1988",
        "csisolatin3 iso-8859-3 iso-ir-109 iso_8859-3 iso_8859-3:1988 l3 latin3",
        Scheme::Web(encoding_rs::ISO_8859_3),
    ),
    encoding(
        "ISO_8859-4:1988",
        "csisolatin4 iso-8859-4 iso-ir-110 iso_8859-4 iso_8859-4:1988 l4 latin4",
        Scheme::Web(encoding_rs::ISO_8859_4),
    ),
    encoding(
        "ISO_8859-5:1988",
        "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso_8859-5 iso_8859-5:1988",
        Scheme::Web(encoding_rs::ISO_8859_5),
    ),
    encoding(
        "ISO_8859-6-E",
        "csiso88596e iso-8859-6-e iso_8859-6-e",
        Scheme::Web(encoding_rs::ISO_8859_6),
    ),
    encoding(
        "ISO_8859-6-I",
        "csiso88596i iso-8859-6-i iso_8859-6-i",
        Scheme::Web(encoding_rs::ISO_8859_6),
    ),
    encoding(
        "ISO_8859-6:1987",
        "arabic asmo-708 csisolatinarabic ecma-114 iso-8859-6 iso-ir-127 iso_8859-6 iso_8859-6:1987",
        Scheme::Web(encoding_rs::ISO_8859_6),
    ),
    encoding(
        "ISO_8859-7:1987",
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso_8859-7 iso_8859-7:1987",
        Scheme::Web(encoding_rs::ISO_8859_7),
    ),
    encoding(
        "ISO_8859-8-E",
        "csiso88598e iso-8859-8-e iso_8859-8-e",
        Scheme::Web(encoding_rs::ISO_8859_8),
    ),
    encoding(
        "ISO_8859-8-I",
        "csiso88598i iso-8859-8-i iso_8859-8-i",
        Scheme::Web(encoding_rs::ISO_8859_8),
    ),
    encoding(
        "ISO_8859-8:1988",
        "csisolatinhebrew hebrew iso-8859-8 iso-ir-138 iso_8859-8 iso_8859-8:1988",
        Scheme::Web(encoding_rs::ISO_8859_8),
    ),
    encoding(
        "ISO_8859-9:1989",
        "csisolatin5 iso-8859-9 iso-ir-148 iso_8859-9 iso_8859-9:1989 l5 latin5",
        Scheme::Latin(TURKISH),
    ),
    encoding("KOI8-R", "cskoi8r koi8-r", Scheme::Web(encoding_rs::KOI8_R)),
    encoding("KOI8-U", "cskoi8u koi8-u", Scheme::Web(encoding_rs::KOI8_U)),
    encoding(
        "Shift_JIS",
        "csshiftjis ms_kanji shift_jis",
        Scheme::Web(encoding_rs::SHIFT_JIS),
    ),
    encoding(
        "US-ASCII",
        "ansi_x3.4-1968 ansi_x3.4-1986 cp367 csascii ibm367 iso-ir-6 iso646-us iso_646.irv:1991 us us-ascii",
        Scheme::Ascii,
    ),
    encoding("UTF-16", "csutf16 utf-16", Scheme::Utf16),
    encoding("UTF-16BE", "csutf16be utf-16be", Scheme::Utf16Be),
    encoding("UTF-16LE", "csutf16le utf-16le", Scheme::Utf16Le),
    encoding("UTF-8", "csutf8 utf-8", Scheme::Utf8),
    encoding(
        "macintosh",
        "csmacintosh mac macintosh",
        Scheme::Web(encoding_rs::MACINTOSH),
    ),
    encoding(
        "windows-1250",
        "cswindows1250 windows-1250",
        Scheme::Web(encoding_rs::WINDOWS_1250),
    ),
    encoding(
        "windows-1251",
        "cswindows1251 windows-1251",
        Scheme::Web(encoding_rs::WINDOWS_1251),
    ),
    encoding(
        "windows-1252",
        "cswindows1252 windows-1252",
        Scheme::Web(encoding_rs::WINDOWS_1252),
    ),
    encoding(
        "windows-1253",
        "cswindows1253 windows-1253",
        Scheme::Web(encoding_rs::WINDOWS_1253),
    ),
    encoding(
        "windows-1254",
        "cswindows1254 windows-1254",
        Scheme::Web(encoding_rs::WINDOWS_1254),
    ),
    encoding(
        "windows-1255",
        "cswindows1255 windows-1255",
        Scheme::Web(encoding_rs::WINDOWS_1255),
    ),
    encoding(
        "windows-1256",
        "cswindows1256 windows-1256",
        Scheme::Web(encoding_rs::WINDOWS_1256),
    ),
    encoding(
        "windows-1257",
        "cswindows1257 windows-1257",
        Scheme::Web(encoding_rs::WINDOWS_1257),
    ),
    encoding(
        "windows-1258",
        "cswindows1258 windows-1258",
        Scheme::Web(encoding_rs::WINDOWS_1258),
    ),
    encoding(
        "windows-874",
        "cswindows874 windows-874",
        Scheme::Web(encoding_rs::WINDOWS_874),
    ),
];

const TURKISH: &[(u8, char)] = &[
    (0xd0, 'Ğ'),
    (0xdd, 'İ'),
    (0xde, 'Ş'),
    (0xf0, 'ğ'),
    (0xfd, 'ı'),
    (0xfe, 'ş'),
];

/// Differences of code page 1047 from 037.
const OPEN_SYSTEMS: &[(u8, char)] = &[
    (0x5f, '^'),
    (0xad, '['),
    (0xb0, '¬'),
    (0xba, 'Ý'),
    (0xbb, '¨'),
    (0xbd, ']'),
];

const IBM437: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const IBM850: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀\
    ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u{ad}±‗¾¶§÷¸°¨·¹³²■\u{a0}";
const IBM852: &str = "ÇüéâäůćçłëŐőîŹÄĆÉĹĺôöĽľŚśÖÜŤťŁ×čáíóúĄąŽžĘę¬źČş«»░▒▓│┤ÁÂĚŞ╣║╗╝Żż┐└┴┬├─┼Ăă╚╔╩╦╠═╬¤đĐĎËďŇÍÎě┘┌█▄ŢŮ▀\
    ÓßÔŃńňŠšŔÚŕŰýÝţ´\u{ad}˝˛ˇ˘§÷¸°¨˙űŘř■\u{a0}";
const IBM855: &str = "ђЂѓЃёЁєЄѕЅіІїЇјЈљЉњЊћЋќЌўЎџЏюЮъЪаАбБцЦдДеЕфФгГ«»░▒▓│┤хХиИ╣║╗╝йЙ┐└┴┬├─┼кК╚╔╩╦╠═╬¤лЛмМнНоОп┘┌█▄Пя▀\
    ЯрРсСтТуУжЖвВьЬ№\u{ad}ыЫзЗшШэЭщЩчЧ§■\u{a0}";
const IBM860: &str = "ÇüéâãàÁçêÊèÍÔìÃÂÉÀÈôõòÚùÌÕÜ¢£Ù₧ÓáíóúñÑªº¿Ò¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const IBM862: &str = "אבגדהוזחטיךכלםמןנסעףפץצקרשת¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const IBM863: &str = "ÇüéâÂà¶çêëèïî‗À§ÉÈÊôËÏûù¤ÔÜ¢£ÙÛƒ¦´óú¨¸³¯Î⌐¬½¼¾«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const IBM865: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø₧ƒáíóúñÑªº¿⌐¬½¼¡«¤░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
    αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";
const IBM037: &str = "\u{0}\u{1}\u{2}\u{3}\u{9c}\u{9}\u{86}\u{7f}\u{97}\u{8d}\u{8e}\u{b}\u{c}\u{d}\u{e}\u{f}\u{10}\
    \u{11}\u{12}\u{13}\u{9d}\u{85}\u{8}\u{87}\u{18}\u{19}\u{92}\u{8f}\u{1c}\u{1d}\u{1e}\u{1f}\u{80}\
    \u{81}\u{82}\u{83}\u{84}\u{a}\u{17}\u{1b}\u{88}\u{89}\u{8a}\u{8b}\u{8c}\u{5}\u{6}\u{7}\u{90}\
    \u{91}\u{16}\u{93}\u{94}\u{95}\u{96}\u{4}\u{98}\u{99}\u{9a}\u{9b}\u{14}\u{15}\u{9e}\u{1a} \u{a0}\
    âäàáãåçñ¢.<(+|&éêëèíîïìß!$*);¬-/ÂÄÀÁÃÅÇÑ¦,%_>?øÉÊËÈÍÎÏÌ`:#@'=\"Øabcdefghi«»ðýþ±°jklmnopqrªºæ¸Æ¤µ\
    ~stuvwxyz¡¿ÐÝÞ®^£¥·©§¶¼½¾[]¯¨´×{ABCDEFGHI\u{ad}ôöòóõ}JKLMNOPQR¹ûüùúÿ\\÷STUVWXYZ²ÔÖÒÓÕ0123456789³\
    ÛÜÙÚ\u{9f}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_every_table_round_trips() {
        for encoding in ENCODINGS {
            if !matches!(
                encoding.scheme,
                Scheme::Latin(_) | Scheme::Upper(..) | Scheme::Whole(..)
            ) {
                continue;
            }
            let bytes: Vec<u8> = (0..=255).collect();
            let text = encoding.decode(&bytes).unwrap();
            assert_eq!(encoding.encode(&text), Some(bytes), "{}", encoding.name);
        }
    }

    #[test]
    fn hz_gb_2312_round_trips() {
        let hz = find("HZ-GB-2312").unwrap();
        assert_eq!(hz.encode("a~中文b").as_deref(), Some(b"a~~~{VPND~}b".as_slice()));
        assert_eq!(hz.decode(b"a~~~{VPND~}b").as_deref(), Some("a~中文b"));
        assert_eq!(hz.decode(b"~{V"), None);
    }

    #[test]
    fn every_name_is_found() {
        for encoding in ENCODINGS {
            assert!(
                find(encoding.name).is_some_and(|e| e.name == encoding.name),
                "{}",
                encoding.name
            );
        }
        assert!(find("utf8").is_none());
    }
}
