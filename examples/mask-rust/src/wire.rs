//! The subset of the protobuf wire format that control messages use.

/// Reads bytes from the front; every read checks what is left.
pub struct Reader<'a> {
    pub data: &'a [u8],
    pub at: usize,
}

pub struct Cut;

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Reader { data, at: 0 }
    }

    pub fn end(&self) -> bool {
        self.at == self.data.len()
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Cut> {
        let b = *self.data.get(self.at).ok_or(Cut)?;
        self.at += 1;
        Ok(b)
    }

    #[inline]
    pub fn uvarint(&mut self) -> Result<u64, Cut> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(first as u64);
        }
        let mut v = (first & 0x7f) as u64;
        for shift in (7..64).step_by(7) {
            let b = self.byte()?;
            if shift == 63 && b > 1 {
                return Err(Cut);
            }
            v |= ((b & 0x7f) as u64) << shift;
            if b < 0x80 {
                return Ok(v);
            }
        }
        Err(Cut)
    }

    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Cut> {
        if n > self.data.len() - self.at {
            return Err(Cut);
        }
        let p = &self.data[self.at..self.at + n];
        self.at += n;
        Ok(p)
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, Cut> {
        let p = self.take(4)?;
        Ok(u32::from_le_bytes([p[0], p[1], p[2], p[3]]))
    }

    /// Bytes preceded by their length as a varint.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Cut> {
        let n = self.uvarint()?;
        if n > self.data.len() as u64 {
            return Err(Cut);
        }
        self.take(n as usize)
    }

    /// One field of a message: its number and value. A varint's value is in the
    /// second place, bytes are in the third.
    fn field(&mut self) -> Result<(u64, u64, &'a [u8]), Cut> {
        let tag = self.uvarint()?;
        match tag & 7 {
            0 => Ok((tag >> 3, self.uvarint()?, &[])),
            1 => self.take(8).map(|p| (tag >> 3, 0, p)),
            2 => self.bytes().map(|p| (tag >> 3, 0, p)),
            5 => self.take(4).map(|p| (tag >> 3, 0, p)),
            _ => Err(Cut),
        }
    }
}

/// An error as it crosses to the host.
pub struct Fault {
    code: &'static str,
    message: String,
}

impl Fault {
    pub fn new(code: &'static str, message: String) -> Self {
        Fault { code, message }
    }

    pub fn unconfigured() -> Self {
        Fault::new("internal", "the module is called before it is configured".into())
    }

    pub fn append(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        w.bytes(1, self.code.as_bytes());
        w.bytes(2, self.message.as_bytes());
    }
}

impl From<Cut> for Fault {
    fn from(_: Cut) -> Self {
        Fault::new("internal", "a message or block from the host is cut off or damaged".into())
    }
}

/// One fault of a configuration.
pub struct Problem {
    pub path: String,
    pub found: String,
    pub expected: &'static str,
    pub message: &'static str,
}

pub struct Writer<'a>(pub &'a mut Vec<u8>);

pub fn put_uvarint(out: &mut Vec<u8>, mut v: u64) {
    while v >= 0x80 {
        out.push(v as u8 | 0x80);
        v >>= 7;
    }
    out.push(v as u8);
}

impl Writer<'_> {
    pub fn uint(&mut self, num: u64, v: u64) {
        put_uvarint(self.0, num << 3);
        put_uvarint(self.0, v);
    }

    pub fn bytes(&mut self, num: u64, v: &[u8]) {
        put_uvarint(self.0, num << 3 | 2);
        put_uvarint(self.0, v.len() as u64);
        self.0.extend_from_slice(v);
    }

    /// One item of ConfigureReply.problems.
    pub fn problem(&mut self, p: &Problem) {
        let mut item = Vec::new();
        let mut w = Writer(&mut item);
        for (num, text) in [(1, p.path.as_str()), (2, &p.found), (3, p.expected), (4, p.message)] {
            w.bytes(num, text.as_bytes());
        }
        self.bytes(1, &item);
    }
}

/// Returns the bytes field of that number, empty when it is left out.
pub fn field(request: &[u8], want: u64) -> Result<&[u8], Cut> {
    let (mut r, mut found) = (Reader::new(request), &[][..]);
    while !r.end() {
        let (num, _, bytes) = r.field()?;
        if num == want {
            found = bytes;
        }
    }
    Ok(found)
}

pub struct Configure<'a> {
    pub role: &'a [u8],
    pub config: &'a [u8],
}

pub fn configure(request: &[u8]) -> Result<Configure<'_>, Cut> {
    Ok(Configure { role: field(request, 1)?, config: field(request, 4)? })
}

pub struct Transform<'a> {
    pub block: &'a [u8],
    pub schemas: Vec<u64>,
}

pub fn transform(request: &[u8]) -> Result<Transform<'_>, Cut> {
    let mut t = Transform { block: &[], schemas: Vec::new() };
    let mut r = Reader::new(request);
    while !r.end() {
        match r.field()? {
            (1, _, bytes) => t.block = bytes,
            (2, v, _) => t.schemas.push(v),
            _ => {}
        }
    }
    Ok(t)
}
