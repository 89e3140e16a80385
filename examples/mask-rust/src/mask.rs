//! What is masked, and how.

use crate::block::{self, Bitmaps, Block};
use crate::json::{self, Value};
use crate::schema::{self, Schema};
use crate::sha256::Hmac;
use crate::wire::{put_uvarint, Cut, Fault, Problem, Reader};

pub struct Mask {
    /// Table and column, split at the last dot.
    columns: Vec<(Vec<u8>, Vec<u8>)>,
    keep: usize,
    hmac: Option<Hmac>,
    tables: Vec<Table>,
    starts: Vec<u32>,
    image: Vec<u8>,
    text: Vec<u8>,
}

/// A table with masked columns.
struct Table {
    def: Vec<u8>,
    schema: Schema,
    masked: Vec<bool>,
}

pub fn configure(config: &[u8]) -> Result<Mask, Vec<Problem>> {
    let problem = |path: &str, found: String, expected, message| Problem { path: path.into(), found, expected, message };
    let options = match json::parse(config) {
        Some(Value::Object(o)) => o,
        _ => return Err(vec![problem("", String::new(), "a JSON object", "the configuration is not JSON")]),
    };
    let mut m = Mask {
        columns: Vec::new(),
        keep: 0,
        hmac: None,
        tables: Vec::new(),
        starts: Vec::new(),
        image: Vec::new(),
        text: Vec::new(),
    };
    let (mut problems, mut hash, mut secret) = (Vec::new(), false, Vec::new());
    for (name, value) in options {
        match (name.as_str(), value) {
            ("columns", Value::List(items)) => {
                for (i, item) in items.into_iter().enumerate() {
                    let text = if let Value::Text(t) = item { t } else { String::new() };
                    match text.rfind('.') {
                        Some(at) if at > 0 && at + 1 < text.len() => {
                            m.columns.push((text.as_bytes()[..at].to_vec(), text.as_bytes()[at + 1..].to_vec()))
                        }
                        _ => problems.push(problem(&format!("columns[{}]", i), text, "namespace.table.column", "is no name of a column")),
                    }
                }
            }
            ("mode", Value::Text(t)) if t == "stars" || t == "hash" => hash = t == "hash",
            ("keep", Value::Number(n)) if n >= 0.0 && n.fract() == 0.0 && n < 1e9 => m.keep = n as usize,
            ("secret", Value::Text(t)) => secret = t.into_bytes(),
            ("mode", _) => problems.push(problem("mode", String::new(), "stars or hash", "is no mode")),
            ("columns", _) => problems.push(problem("columns", String::new(), "a list of texts", "is of another type")),
            ("keep", _) => problems.push(problem("keep", String::new(), "a whole number, 0 or more", "is of another type")),
            ("secret", _) => problems.push(problem("secret", String::new(), "a text", "is of another type")),
            _ => problems.push(problem(&name, String::new(), "columns, mode, keep or secret", "is no option")),
        }
    }
    if problems.is_empty() && m.columns.is_empty() {
        problems.push(problem("columns", String::new(), "a list of texts", "must be given"));
    }
    if hash {
        if secret.len() < 16 {
            let found = format!("{} bytes", secret.len());
            problems.push(problem("secret", found, "16 or more", "is too short: what a hash hides can be guessed without it"));
        }
        m.hmac = Some(Hmac::new(&secret));
    }
    if problems.is_empty() { Ok(m) } else { Err(problems) }
}

impl Mask {
    /// Takes a table's layout and says whether it has masked columns. A table
    /// whose columns cannot be masked as told is refused: to let them pass would
    /// give away what is to be hidden.
    pub fn learn(&mut self, def: &[u8]) -> Result<bool, Fault> {
        let s = schema::decode(def)?;
        let mut masked = vec![false; s.columns.len()];
        let mut any = false;
        for (table, name) in &self.columns {
            if *table != s.name {
                continue;
            }
            any = true;
            let full = || String::from_utf8_lossy(&[&s.name[..], b".", name].concat()).into_owned();
            let refuse = |text: String| Err(Fault::new("schema-mismatch", text));
            match s.columns.iter().position(|c| c.name == *name) {
                None => return refuse(format!("there is no column {} to mask", full())),
                Some(i) if s.columns[i].kind != schema::STRING => {
                    return refuse(format!("column {} is of type {}, mask expects string ({})", full(), s.columns[i].kind, schema::STRING))
                }
                Some(i) if s.key.contains(&(i as u64)) => {
                    return refuse(format!("column {} is part of the key, which a mask does not change", full()))
                }
                Some(i) => masked[i] = true,
            }
        }
        if any {
            self.tables.retain(|t| t.schema.id != s.id);
            self.tables.push(Table { def: def.to_vec(), schema: s, masked });
        }
        Ok(any)
    }

    /// Appends the block with the rows of those schemas masked.
    pub fn apply(&mut self, data: &[u8], schemas: &[u64], out: &mut Vec<u8>) -> Result<(), Fault> {
        let b = Block::decode(data)?;
        self.refresh(&b)?;
        let at = out.len();
        out.reserve(data.len() + data.len() / 8);
        out.resize(at + block::HEADER, 0);
        self.starts.clear();
        for i in 0..b.events {
            let event = b.event(i)?;
            self.starts.push((out.len() - at) as u32);
            let mut r = Reader::new(event);
            let (kind, flags, id) = (r.byte()?, r.byte()?, r.uvarint()?);
            // Kinds 1 to 4 are rows.
            if (1..=4).contains(&kind) && schemas.contains(&id) {
                let Mask { tables, keep, hmac, text, image, .. } = self;
                let t = tables.iter().find(|t| t.schema.id == id).ok_or(Cut)?;
                let mut hide = Hide { keep: *keep, hmac: hmac.as_ref(), text };
                row(&mut r, flags, t, &mut hide, image, out)?;
            } else {
                out.extend_from_slice(event);
            }
        }
        b.finish(out, at, &self.starts);
        Ok(())
    }

    /// Takes the definitions of the block where they differ from what is known.
    fn refresh(&mut self, b: &Block) -> Result<(), Fault> {
        let mut r = Reader::new(&b.data[b.schemas_at..]);
        for _ in 0..b.schemas {
            let def = r.bytes()?;
            let id = Reader::new(def).uvarint()?;
            if self.tables.iter().any(|t| t.schema.id == id && t.def != def) {
                self.learn(def)?;
            }
        }
        Ok(())
    }
}

struct Hide<'a> {
    keep: usize,
    hmac: Option<&'a Hmac>,
    text: &'a mut Vec<u8>,
}

/// Copies one row event, the values of masked columns replaced.
fn row(r: &mut Reader, flags: u8, t: &Table, hide: &mut Hide, image: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Cut> {
    r.uvarint()?; // ordinal
    out.extend_from_slice(&r.data[..r.at]);
    for side in [block::BEFORE, block::AFTER] {
        if flags & side == 0 {
            continue;
        }
        let n = r.u32()? as usize;
        let mut im = Reader::new(r.take(n)?);
        copy_image(&mut im, t, hide, image)?;
        out.extend_from_slice(&(image.len() as u32).to_le_bytes());
        out.extend_from_slice(image);
    }
    out.extend_from_slice(&r.data[r.at..]); // keys: no masked column is in them
    Ok(())
}

fn copy_image(r: &mut Reader, t: &Table, hide: &mut Hide, out: &mut Vec<u8>) -> Result<(), Cut> {
    out.clear();
    let flags = r.byte()?;
    let maps = Bitmaps::read(r, flags, t.schema.columns.len())?;
    // A masked value is text, also where the original was raw.
    let raw_map = 1 + [0, 1, 2].iter().filter(|m| maps.maps[**m].is_some()).count() * ((t.schema.columns.len() + 7) / 8);
    out.extend_from_slice(&r.data[..r.at]);
    let mut copied = r.at;
    for (i, c) in t.schema.columns.iter().enumerate() {
        if maps.none(i) {
            continue;
        }
        let raw = maps.raw(i);
        if !raw && c.width > 0 {
            r.take(c.width)?;
            continue;
        }
        let start = r.at;
        let value = r.bytes()?;
        if t.masked[i] {
            out.extend_from_slice(&r.data[copied..start]);
            copied = r.at;
            if raw {
                let mut v = Reader::new(value);
                v.bytes()?; // name of the charset
                hide.raw(&value[v.at..], c.length, out);
                out[raw_map + (i >> 3)] &= !(1 << (i & 7));
            } else {
                hide.text(value, c.length, out);
            }
        }
    }
    out.extend_from_slice(&r.data[copied..]);
    if flags & block::RAW != 0 {
        let end = raw_map + (t.schema.columns.len() + 7) / 8;
        if out[raw_map..end].iter().all(|b| *b == 0) {
            out.drain(raw_map..end);
            out[0] &= !block::RAW;
        }
    }
    Ok(())
}

impl Hide<'_> {
    /// Appends a masked text, preceded by its length.
    fn text(&mut self, value: &[u8], length: u64, out: &mut Vec<u8>) {
        if self.hash(value, length, out) {
            return;
        }
        let first_of_char = |b: &u8| *b & 0xc0 != 0x80;
        let n = value.iter().filter(|b| first_of_char(b)).count();
        let stars = n - self.keep.min(n / 2); // half of a short text is hidden at least
        // The kept tail begins at the character after the stars.
        let at = match value.iter().enumerate().filter(|(_, b)| first_of_char(b)).nth(stars) {
            Some((at, _)) => at,
            None => value.len(),
        };
        put_uvarint(out, (stars + value.len() - at) as u64);
        out.resize(out.len() + stars, b'*');
        out.extend_from_slice(&value[at..]);
    }

    /// Appends a mask for bytes that are no text: one star each.
    fn raw(&mut self, value: &[u8], length: u64, out: &mut Vec<u8>) {
        if !self.hash(value, length, out) {
            put_uvarint(out, value.len() as u64);
            out.resize(out.len() + value.len(), b'*');
        }
    }

    fn hash(&mut self, value: &[u8], length: u64, out: &mut Vec<u8>) -> bool {
        let hmac = match self.hmac {
            Some(h) => h,
            None => return false,
        };
        self.text.clear();
        for b in hmac.sum(value) {
            self.text.push(b"0123456789abcdef"[(b >> 4) as usize]);
            self.text.push(b"0123456789abcdef"[(b & 15) as usize]);
        }
        if length > 0 && length < self.text.len() as u64 {
            self.text.truncate(length as usize);
        }
        put_uvarint(out, self.text.len() as u64);
        out.extend_from_slice(self.text);
        true
    }
}
