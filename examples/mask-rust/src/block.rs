//! The packed block: its sections, events and images.

use crate::wire::{Cut, Reader};

pub const HEADER: usize = 40;

/// A block with its sections apart.
pub struct Block<'a> {
    pub data: &'a [u8],
    pub events: usize,
    /// Where the offsets of events, the transaction table and the definitions begin.
    pub offsets: usize,
    pub txs_at: usize,
    pub schemas_at: usize,
    pub schemas: usize,
}

fn u32_at(p: &[u8], at: usize) -> Result<usize, Cut> {
    Reader { data: p, at }.u32().map(|v| v as usize)
}

impl<'a> Block<'a> {
    pub fn decode(data: &'a [u8]) -> Result<Self, Cut> {
        if data.len() < HEADER || data[..4] != *b"DLB\x01" || u32_at(data, 4)? != data.len() {
            return Err(Cut);
        }
        let b = Block {
            data,
            events: u32_at(data, 8)?,
            offsets: u32_at(data, 12)?,
            txs_at: u32_at(data, 16)?,
            schemas_at: u32_at(data, 24)?,
            schemas: u32_at(data, 28)?,
        };
        let sections = HEADER <= b.offsets && b.offsets <= b.txs_at && b.txs_at <= b.schemas_at && b.schemas_at <= data.len();
        if !sections || (b.txs_at - b.offsets) / 4 != b.events {
            return Err(Cut);
        }
        Ok(b)
    }

    /// The encoded i-th event.
    #[inline]
    pub fn event(&self, i: usize) -> Result<&'a [u8], Cut> {
        let start = u32_at(self.data, self.offsets + 4 * i)?;
        let end = if i + 1 < self.events { u32_at(self.data, self.offsets + 4 * i + 4)? } else { self.offsets };
        self.data.get(start..end).ok_or(Cut)
    }

    /// Writes the sections that stand behind the events, as they are but for the
    /// offsets, and the header. The block begins at byte `at` of out.
    pub fn finish(&self, out: &mut Vec<u8>, at: usize, starts: &[u32]) {
        let offsets = out.len() - at;
        for s in starts {
            out.extend_from_slice(&s.to_le_bytes());
        }
        let txs_at = out.len() - at;
        out.extend_from_slice(&self.data[self.txs_at..self.schemas_at]);
        let schemas_at = out.len() - at;
        out.extend_from_slice(&self.data[self.schemas_at..]);
        let total = out.len() - at;
        let header = &mut out[at..at + HEADER];
        header.copy_from_slice(&self.data[..HEADER]);
        for (place, v) in [(4, total), (12, offsets), (16, txs_at), (24, schemas_at)] {
            header[place..place + 4].copy_from_slice(&(v as u32).to_le_bytes());
        }
    }
}

pub const BEFORE: u8 = 1;
pub const AFTER: u8 = 2;

/// Flags of an image; a bitmap of the columns follows for each.
pub const ABSENT: u8 = 1;
pub const NULL: u8 = 2;
pub const UNCHANGED: u8 = 4;
pub const RAW: u8 = 8;

/// The bitmaps of an image.
pub struct Bitmaps<'a> {
    pub maps: [Option<&'a [u8]>; 4],
}

impl<'a> Bitmaps<'a> {
    pub fn read(r: &mut Reader<'a>, flags: u8, columns: usize) -> Result<Self, Cut> {
        if flags & !(ABSENT | NULL | UNCHANGED | RAW) != 0 {
            return Err(Cut);
        }
        let mut maps = [None; 4];
        for (i, m) in maps.iter_mut().enumerate() {
            if flags & 1 << i != 0 {
                *m = Some(r.take((columns + 7) / 8)?);
            }
        }
        Ok(Bitmaps { maps })
    }

    #[inline]
    fn has(&self, map: usize, column: usize) -> bool {
        self.maps[map].map_or(false, |m| m[column >> 3] & 1 << (column & 7) != 0)
    }

    /// Whether the column has no bytes in the image.
    #[inline]
    pub fn none(&self, column: usize) -> bool {
        self.has(0, column) || self.has(1, column) || self.has(2, column)
    }

    #[inline]
    pub fn raw(&self, column: usize) -> bool {
        self.has(3, column)
    }
}
