//! The header of a `.npy` file: a Python dict literal with three keys, read by a parser of its own.
//!
//! Assumes nothing: the text may come from anywhere. What it accepts is what NumPy writes, in any
//! order of keys and with any white space; everything else is an error that says where. Called by
//! `npy`, `npz` and `mapped`.

use std::io::Read;

use tilework_error::{Result, tuple};
use tilework_layout::Layout;
use tilework_ops::DType;

use super::Origin;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// The longest header that is read: 64 axes take about a thousand bytes.
const LONGEST: usize = 1 << 20;

/// Headers are padded so that the data begins at a multiple of this.
const PADDED_TO: usize = 64;

/// What the header says, checked: the data has `bytes` bytes and they fit an address space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    /// Whether the bytes of each number are in the other order than this machine's.
    pub(super) swapped: bool,
    /// Whether the first axis varies fastest.
    pub(super) fortran: bool,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: usize,
}

impl Header {
    /// Reads the header; also how many bytes it took.
    pub(super) fn read(origin: Origin<'_>, reader: &mut dyn Read) -> Result<(Header, usize)> {
        let mut start = [0u8; 8];
        let got = read_up_to(reader, &mut start).map_err(|error| origin.io(error))?;
        check_magic(origin, &start[..got])?;
        let (major, minor) = (start[6], start[7]);
        let size_bytes = match (major, minor) {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            _ => {
                let message = format!("version {major}.{minor} of the .npy format is not known");
                return Err(origin.bad(message));
            }
        };
        let mut size = [0u8; 4];
        let got = read_up_to(reader, &mut size[..size_bytes]).map_err(|error| origin.io(error))?;
        if got < size_bytes {
            return Err(origin.bad("the file ends inside its header"));
        }
        let size = u32::from_le_bytes(size) as usize;
        if size > LONGEST {
            return Err(origin.bad(format!("a header of {size} bytes is too long to be one")));
        }
        let mut text = Vec::new();
        reader.take(size as u64).read_to_end(&mut text).map_err(|error| origin.io(error))?;
        if text.len() < size {
            let have = text.len();
            return Err(origin.bad(format!(
                "the file ends inside its header: {have} of {size} bytes are there"
            )));
        }
        let header = parse(&text).map_err(|problem| origin.bad(problem))?;
        Ok((header, 8 + size_bytes + size))
    }

    /// The bytes of a header for data in this machine's byte order.
    pub(super) fn write(dtype: DType, shape: &[usize], fortran: bool) -> Vec<u8> {
        let order = if fortran { "True" } else { "False" };
        let (descr, shape) = (descr(dtype), tuple(shape));
        let mut text =
            format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
        // The length and a line feed follow; two bytes are enough for any shape that 64 axes can
        // have, but the format has a second version and so have we.
        let length_bytes = if text.len() + PADDED_TO < usize::from(u16::MAX) { 2 } else { 4 };
        let fixed = MAGIC.len() + 2 + length_bytes;
        let total = (fixed + text.len() + 1).next_multiple_of(PADDED_TO);
        text.extend(std::iter::repeat_n(' ', total - fixed - text.len() - 1));
        text.push('\n');
        let mut bytes = Vec::with_capacity(total);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&[if length_bytes == 2 { 1 } else { 2 }, 0]);
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes()[..length_bytes]);
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    /// The array's layout on data that begins a block.
    pub(super) fn layout(&self) -> Result<Layout> {
        if self.fortran {
            let reversed: Vec<usize> = self.shape.iter().rev().copied().collect();
            return Ok(Layout::contiguous(&reversed)?.transpose());
        }
        Layout::contiguous(&self.shape)
    }

    /// An error unless `have` bytes of data are at least what the shape needs.
    pub(super) fn check_length(&self, origin: Origin<'_>, taken: usize, have: u64) -> Result<()> {
        if have >= self.bytes as u64 {
            return Ok(());
        }
        Err(origin.bad(format!(
            "shape {} of {} needs {} bytes, but only {have} follow the header of {taken} bytes",
            tuple(&self.shape),
            self.dtype,
            self.bytes
        )))
    }
}

/// Reads until the buffer is full or there is no more; how many bytes there were.
fn read_up_to(reader: &mut dyn Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn check_magic(origin: Origin<'_>, start: &[u8]) -> Result<()> {
    if start.len() == 8 && start.starts_with(MAGIC) {
        return Ok(());
    }
    Err(origin.bad(if start.starts_with(b"PK\x03\x04") || start.starts_with(b"PK\x05\x06") {
        "a zip archive; load_npz reads those".into()
    } else if start.first() == Some(&0x80) {
        "it looks like a pickle; pickles can run code and are never read".into()
    } else if MAGIC.starts_with(&start[..start.len().min(6)]) {
        format!("the file ends inside its header: it has {} bytes", start.len())
    } else {
        "not a .npy file: it does not begin with \\x93NUMPY".to_string()
    }))
}

const NATIVE: char = if cfg!(target_endian = "little") { '<' } else { '>' };

/// How NumPy spells a dtype in a header; bfloat16 as ml_dtypes does.
fn descr(dtype: DType) -> String {
    let size = dtype.size();
    match dtype {
        DType::Bool => "|b1".into(),
        DType::Int8 => "|i1".into(),
        DType::UInt8 => "|u1".into(),
        // Two bytes without a meaning, of which `x.view(ml_dtypes.bfloat16)` makes numbers again.
        DType::BFloat16 => format!("{NATIVE}V2"),
        _ if dtype.is_complex() => format!("{NATIVE}c{size}"),
        _ if dtype.is_float() => format!("{NATIVE}f{size}"),
        _ if dtype.kind() == tilework_ops::Kind::Unsigned => format!("{NATIVE}u{size}"),
        _ => format!("{NATIVE}i{size}"),
    }
}

/// The dtype of a `descr`, and whether its bytes are swapped.
fn parse_descr(descr: &str) -> Result<(DType, bool), String> {
    let order = descr.chars().next().filter(|order| "<>|=".contains(*order));
    let code = &descr[order.map_or(0, char::len_utf8)..];
    let dtype = match code {
        "b1" | "?" => DType::Bool,
        "i1" => DType::Int8,
        "i2" => DType::Int16,
        "i4" => DType::Int32,
        "i8" => DType::Int64,
        "u1" => DType::UInt8,
        "u2" => DType::UInt16,
        "u4" => DType::UInt32,
        "u8" => DType::UInt64,
        "f2" => DType::Float16,
        "f4" => DType::Float32,
        "f8" => DType::Float64,
        "c8" => DType::Complex64,
        "c16" => DType::Complex128,
        // With an order of bytes they are numbers, those of ml_dtypes; NumPy's raw bytes have none.
        "V2" if order != Some('|') => DType::BFloat16,
        _ => {
            let why = match code.as_bytes().first() {
                Some(b'O') => "Python objects are pickles, which can run code and are never read",
                Some(b'U' | b'S' | b'a') => "text is not a dtype here",
                Some(b'M' | b'm') => "times are not a dtype here; save them as int64",
                Some(b'V') => "raw bytes and records are not a dtype here",
                Some(b'f' | b'g' | b'c' | b'G') => "this width is not a dtype here; save float64",
                _ => "it is not a dtype here",
            };
            return Err(format!("dtype {descr:?}: {why}"));
        }
    };
    let swapped = matches!(order, Some(order) if order != NATIVE && "<>".contains(order));
    Ok((dtype, swapped && dtype.size() > 1))
}

/// Parses the dict.
fn parse(text: &[u8]) -> Result<Header, String> {
    let mut text = Text { bytes: text, at: 0 };
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    text.expect(b'{')?;
    while !text.take(b'}') {
        let key = text.string()?;
        text.expect(b':')?;
        let twice = match key.as_str() {
            "descr" => descr.replace(text.descr()?).is_some(),
            "fortran_order" => fortran.replace(text.boolean()?).is_some(),
            "shape" => shape.replace(text.shape()?).is_some(),
            _ => return Err(format!("the header has a key {key:?} that no array has")),
        };
        if twice {
            return Err(format!("the header has two values for {key:?}"));
        }
        if !text.take(b',') {
            text.expect(b'}')?;
            break;
        }
    }
    text.space();
    if text.at < text.bytes.len() {
        return Err(text.wrong("the end of the header"));
    }
    let missing = |key: &str| format!("the header does not tell {key:?}");
    let (dtype, swapped) = parse_descr(&descr.ok_or_else(|| missing("descr"))?)?;
    let fortran = fortran.ok_or_else(|| missing("fortran_order"))?;
    let shape = shape.ok_or_else(|| missing("shape"))?;
    let layout = Layout::contiguous(&shape).map_err(|error| error.to_string())?;
    let bytes =
        layout.len().checked_mul(dtype.size()).filter(|&bytes| isize::try_from(bytes).is_ok());
    let bytes = bytes.ok_or_else(|| {
        format!("shape {} of {dtype} has more bytes than memory can", tuple(&shape))
    })?;
    Ok(Header { dtype, swapped, fortran, shape, bytes })
}

/// A place in the header's text.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Text<'_> {
    fn space(&mut self) {
        while self.bytes.get(self.at).is_some_and(|byte| b" \t\n\r\x0c".contains(byte)) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong(&format!("{:?}", byte as char))) }
    }

    fn wrong(&mut self, wanted: &str) -> String {
        match self.peek() {
            Some(byte) => {
                let found = byte.escape_ascii();
                format!("header, byte {}: '{found}' where {wanted} should be", self.at)
            }
            None => format!("the header ends where {wanted} should be"),
        }
    }

    /// A string literal in either kind of quotes; escapes do not occur in what NumPy writes.
    fn string(&mut self) -> Result<String, String> {
        let quote = self.peek().filter(|byte| b"'\"".contains(byte));
        let quote = quote.ok_or_else(|| self.wrong("a string"))?;
        let start = self.at + 1;
        let rest = &self.bytes[start..];
        let end = rest.iter().position(|&byte| byte == quote);
        let content = &rest[..end.ok_or("the header ends inside a string")?];
        if content.contains(&b'\\') || !content.is_ascii() {
            return Err(format!("header, byte {start}: a string that is not plain"));
        }
        self.at = start + content.len() + 1;
        Ok(content.iter().map(|&byte| byte as char).collect())
    }

    fn descr(&mut self) -> Result<String, String> {
        if self.peek().is_some_and(|byte| b"[({".contains(&byte)) {
            return Err("records (structured dtypes) are not read; save each field alone".into());
        }
        self.string()
    }

    fn boolean(&mut self) -> Result<bool, String> {
        self.space();
        let rest = &self.bytes[self.at..];
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.wrong("True or False"))
    }

    /// A tuple of lengths. One in parentheses without a comma is a number in Python, and no shape.
    fn shape(&mut self) -> Result<Vec<usize>, String> {
        self.expect(b'(')?;
        let mut shape = Vec::new();
        let mut commas = 0;
        while !self.take(b')') {
            shape.push(self.length()?);
            if self.take(b',') {
                commas += 1;
            } else {
                self.expect(b')')?;
                break;
            }
        }
        if shape.len() == 1 && commas == 0 {
            return Err(format!("header: ({}) is not a shape; ({},) would be", shape[0], shape[0]));
        }
        Ok(shape)
    }

    fn length(&mut self) -> Result<usize, String> {
        self.space();
        let rest = &self.bytes[self.at..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return Err(self.wrong("a length"));
        }
        let number = rest[..digits].iter().try_fold(0usize, |sum, digit| {
            sum.checked_mul(10)?.checked_add(usize::from(digit - b'0'))
        });
        self.at += digits;
        // Python 2 wrote its long integers with a letter.
        self.at += usize::from(self.bytes.get(self.at) == Some(&b'L'));
        number.ok_or_else(|| "header: a length is larger than memory".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Header, String> {
        parse(text.as_bytes())
    }

    #[test]
    fn reads_what_numpy_writes_however_it_is_spaced() {
        let plain =
            parsed("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n").unwrap();
        assert_eq!((plain.dtype, plain.bytes, plain.fortran), (DType::Float64, 96, false));
        let odd = parsed("\n{ \"shape\":(3,4,),'fortran_order' :False\t,'descr':\"<f8\"}").unwrap();
        assert_eq!(odd, plain);
        let bfloat16 = parsed("{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}").unwrap();
        assert_eq!(bfloat16.dtype, DType::BFloat16);
        let raw = parsed("{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}").unwrap_err();
        assert!(raw.contains("raw bytes"), "{raw}");
        let python2 = parsed("{'descr': '|u1', 'fortran_order': True, 'shape': (3L,)}").unwrap();
        assert_eq!((python2.shape, python2.fortran), (vec![3], true));
        assert_eq!(
            parsed("{'descr':'<i4','fortran_order':False,'shape':()}").unwrap().shape,
            [0usize; 0]
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let cases = [
            ("", "ends where '{'"),
            ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "never read"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "records"),
            ("{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", "width"),
            ("{'descr': '<U3', 'fortran_order': False, 'shape': (1,)}", "text"),
            ("{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (1,)}", "times"),
            ("{'descr': '<f4', 'fortran_order': False}", "\"shape\""),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "(1,)"),
            ("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", "True or False"),
            ("{'descr': '<f4', 'fortran_order': True, 'shape': (-1,)}", "a length"),
            ("{'descr': '<f4', 'descr': '<f4'}", "two values"),
            ("{'descr': '<f4', 'weight': 3}", "no array has"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", "the end"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                "larger than memory",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
                "more elements than memory",
            ),
            (
                "{'descr': '<c16', 'fortran_order': False, 'shape': (1152921504606846976,)}",
                "more bytes than memory",
            ),
        ];
        for (text, part) in cases {
            let problem = parsed(text).unwrap_err();
            assert!(problem.contains(part), "{text}\n{problem}");
        }
    }

    #[test]
    fn headers_read_back_and_are_padded() {
        let origin = Origin::new("test", "memory");
        for dtype in DType::ALL {
            for shape in [&[][..], &[0], &[3], &[2, 0, 5], &[1; 64]] {
                let bytes = Header::write(dtype, shape, true);
                assert_eq!(bytes.len() % PADDED_TO, 0);
                let (header, taken) = Header::read(origin, &mut &bytes[..]).unwrap();
                assert_eq!((header.dtype, &header.shape[..], taken), (dtype, shape, bytes.len()));
                assert!(!header.swapped && header.fortran);
            }
        }
    }
}
