//! JSON, as far as a configuration needs it.

pub enum Value {
    Null,
    Bool,
    Number(f64),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// Returns the value, or None where the text is not JSON.
pub fn parse(text: &[u8]) -> Option<Value> {
    let mut p = Parser { text: std::str::from_utf8(text).ok()?.as_bytes(), at: 0 };
    let v = p.value(0)?;
    p.space();
    if p.at == p.text.len() { Some(v) } else { None }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn eat(&mut self, c: u8) -> bool {
        self.space();
        let ok = self.text.get(self.at) == Some(&c);
        self.at += ok as usize;
        ok
    }

    fn word(&mut self, w: &str, v: Value) -> Option<Value> {
        let found = self.text[self.at..].starts_with(w.as_bytes());
        self.at += w.len();
        if found { Some(v) } else { None }
    }

    fn value(&mut self, depth: u32) -> Option<Value> {
        self.space();
        match *self.text.get(self.at)? {
            _ if depth > 32 => None,
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool),
            b'f' => self.word("false", Value::Bool),
            b'"' => self.string().map(Value::Text),
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                if self.eat(b']') {
                    return Some(Value::List(items));
                }
                loop {
                    items.push(self.value(depth + 1)?);
                    if self.eat(b']') {
                        return Some(Value::List(items));
                    }
                    if !self.eat(b',') {
                        return None;
                    }
                }
            }
            b'{' => {
                self.at += 1;
                let mut items = Vec::new();
                if self.eat(b'}') {
                    return Some(Value::Object(items));
                }
                loop {
                    self.space();
                    let name = self.string()?;
                    if !self.eat(b':') {
                        return None;
                    }
                    items.push((name, self.value(depth + 1)?));
                    if self.eat(b'}') {
                        return Some(Value::Object(items));
                    }
                    if !self.eat(b',') {
                        return None;
                    }
                }
            }
            _ => {
                let start = self.at;
                while matches!(self.text.get(self.at), Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')) {
                    self.at += 1;
                }
                std::str::from_utf8(&self.text[start..self.at]).ok()?.parse().ok().map(Value::Number)
            }
        }
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    }

    fn string(&mut self) -> Option<String> {
        if self.text.get(self.at) != Some(&b'"') {
            return None;
        }
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let c = *self.text.get(self.at)?;
            self.at += 1;
            match c {
                b'"' => return String::from_utf8(out).ok(),
                b'\\' => {
                    let e = *self.text.get(self.at)?;
                    self.at += 1;
                    let ch = match e {
                        b'"' | b'\\' | b'/' => e as char,
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        b'u' => {
                            let mut v = self.hex()?;
                            if (0xd800..0xdc00).contains(&v) && self.text[self.at..].starts_with(b"\\u") {
                                self.at += 2;
                                v = 0x10000 + ((v - 0xd800) << 10) + self.hex()?.checked_sub(0xdc00)?;
                            }
                            char::from_u32(v)?
                        }
                        _ => return None,
                    };
                    out.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
                }
                _ => out.push(c),
            }
        }
    }
}
