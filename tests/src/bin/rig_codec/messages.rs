//! JSON-RPC messages that are made up, the same ones in every run: everyday ones, and ones full of what codecs get wrong.

use std::fmt::Write as _;

use lumen_proto::value::dict;

/// An endless row of JSON-RPC messages as JSON texts without tabs and line feeds.
pub struct Messages {
    random: u64,
    /// Whether the message being made may hold what some receivers, or the codec itself, cannot take.
    odd: bool,
}

impl Messages {
    pub fn new() -> Self {
        Self { random: 0x9e37_79b9_7f4a_7c15, odd: false }
    }

    fn message(&mut self) -> String {
        self.odd = self.one_in(3);
        let mut out = r#"{"jsonrpc":"2.0""#.to_owned();
        match self.below(8) {
            0..=2 => {
                self.id(&mut out);
                self.method(&mut out);
                self.member_value("params", &mut out);
            }
            3..=5 => {
                self.id(&mut out);
                self.member_value("result", &mut out);
            }
            6 => {
                self.method(&mut out);
                self.member_value("params", &mut out);
            }
            _ => {
                self.id(&mut out);
                let _ = write!(out, r#","error":{{"code":-32{:03},"message":"#, self.below(1000));
                self.string(&mut out);
                self.member_value("data", &mut out);
                out.push('}');
            }
        }
        out.push('}');
        out
    }

    fn id(&mut self, out: &mut String) {
        let _ = match self.below(4) {
            0 => write!(out, r#","id":"{:08x}-{}""#, self.bits() >> 32, self.below(100)),
            _ => write!(out, r#","id":{}"#, self.below(100_000)),
        };
    }

    fn method(&mut self, out: &mut String) {
        let methods = ["tools/call", "resources/read", "ping", "notifications/progress", "search", "a/ü"];
        let _ = write!(out, r#","method":"{}""#, methods[self.pick(methods.len())]);
    }

    fn member_value(&mut self, key: &str, out: &mut String) {
        let _ = write!(out, r#","{key}":"#);
        match self.below(40) {
            0 => self.deep(out),
            1 => self.wide(out),
            2 => self.long(out),
            _ => self.object(4, out),
        }
    }

    fn value(&mut self, depth: u64, out: &mut String) {
        match self.below(if depth == 0 { 8 } else { 12 }) {
            0 => out.push_str("null"),
            1 => out.push_str(if self.one_in(2) { "true" } else { "false" }),
            2 | 3 => self.number(out),
            4..=7 => self.string(out),
            8 | 9 => self.array(depth - 1, out),
            _ => self.object(depth - 1, out),
        }
    }

    fn array(&mut self, depth: u64, out: &mut String) {
        out.push('[');
        for n in 0..self.below(8) {
            self.comma(n, out);
            self.value(depth, out);
        }
        out.push(']');
    }

    fn object(&mut self, depth: u64, out: &mut String) {
        out.push('{');
        let mut used = Vec::new();
        for n in 0..self.below(8) {
            let mut key = String::new();
            self.key(&mut key);
            // The same key twice is JSON too, but not for everyday messages.
            if used.contains(&key) && !self.odd {
                key.insert_str(1, &format!("{n}."));
            }
            self.comma(n, out);
            out.push_str(&key);
            out.push(':');
            self.value(depth, out);
            used.push(key);
        }
        out.push('}');
    }

    /// Containers in containers, about as many as receivers take.
    fn deep(&mut self, out: &mut String) {
        let levels = if self.odd { 28 + self.below(10) } else { 20 + self.below(12) };
        let mut ends = String::new();
        for _ in 1..levels {
            let array = self.one_in(2);
            out.push_str(if array { "[0," } else { r#"{"a":"# });
            ends.insert(0, if array { ']' } else { '}' });
        }
        self.number(out);
        out.push_str(&ends);
    }

    /// Containers with a count around where its form or the receiver's mind changes.
    fn wide(&mut self, out: &mut String) {
        let counts = [63, 64, 65, 255, 256, 1024, 1025, 2000];
        let count = counts[self.pick(if self.odd { 8 } else { 6 })];
        let array = self.one_in(2);
        out.push(if array { '[' } else { '{' });
        for n in 0..count {
            self.comma(n, out);
            let _ = if array { write!(out, "{n}") } else { write!(out, r#""k{n}":{n}"#) };
        }
        out.push(if array { ']' } else { '}' });
    }

    /// A string of a length around where its form changes.
    fn long(&mut self, out: &mut String) {
        let lens = [62, 63, 64, 65, 1000, 65_535, 65_536, 70_000];
        let all = self.one_in(4);
        let len = lens[self.pick(if all { 8 } else { 5 })];
        let _ =
            write!(out, r#"{{"text":"{}"}}"#, "lumen ".repeat(len / 6 + 1).get(..len).unwrap_or_default());
    }

    fn number(&mut self, out: &mut String) {
        if self.odd && self.one_in(3) {
            self.odd_number(out);
            return;
        }
        let _ = match self.below(8) {
            0 => write!(out, "{}", self.below(64)),
            1 => write!(out, "{}", self.below(100_000)),
            2 => write!(out, "-{}", self.below(100_000) + 1),
            3 => {
                let edges =
                    [-2_147_483_648, 2_147_483_647, -64, 63, 64, -65, 8191, 8192, -8193, 1_048_576_i64];
                write!(out, "{}", edges[self.pick(edges.len())])
            }
            4 => write!(out, "{}.{}5", self.below(1000), self.below(1000)),
            5 => write!(out, "-0.00{}1e-{}", self.below(1000), self.below(20)),
            6 => write!(out, "{}.5E+{}", self.below(10), 25 + self.below(100)),
            _ => write!(out, "{:?}", self.fraction()),
        };
    }

    fn odd_number(&mut self, out: &mut String) {
        let _ = match self.below(8) {
            0 => {
                let edges = [i64::MIN, i64::MAX, 1 << 53, (1 << 53) + 1, -2_147_483_649, 2_147_483_648];
                write!(out, "{}", edges[self.pick(edges.len())])
            }
            1 => write!(out, "{}", self.bits().cast_signed()),
            2 => write!(out, "{}.0", self.below(1000)),
            3 => write!(out, "{}e{}", self.below(1000), self.below(12)),
            4 => out.write_str(["-0", "-0.0", "0.0", "0e9", "1e400", "-1e999"][self.pick(6)]),
            5 => write!(out, "{}{}", i64::MAX, self.below(1000)),
            6 => write!(out, "0.{}{}", self.bits(), self.bits()),
            _ => {
                let float = f64::from_bits(self.bits());
                write!(out, "{:e}", if float.is_finite() { float } else { 1e22 })
            }
        };
    }

    /// A float in [0, 1) that needs all its digits.
    fn fraction(&mut self) -> f64 {
        let float = f64::from_bits(0x3ff0_0000_0000_0000 | self.bits() >> 12) - 1.0;
        if float == 0.0 { 0.1 } else { float }
    }

    fn key(&mut self, out: &mut String) {
        let names = ["inputSchema", "isError", "_meta", "", "a b", "größe", "constructor", "toString"];
        match self.below(8) {
            0..=2 => self.word(out),
            3 => {
                let _ = write!(out, r#""{}""#, names[self.pick(names.len())]);
            }
            // JavaScript puts a key like this before all others.
            4 if self.one_in(12) => out.push_str(r#""17""#),
            5 if self.odd && self.one_in(4) => out.push_str(r#""__proto__""#),
            _ => self.string(out),
        }
    }

    fn word(&mut self, out: &mut String) {
        let id = u8::try_from(self.below(128)).unwrap_or_default();
        let _ = write!(out, r#""{}""#, dict::static_word(id).unwrap_or_default());
    }

    fn string(&mut self, out: &mut String) {
        match self.below(8) {
            0 | 1 => self.word(out),
            2 | 3 => {
                let _ = write!(out, r#""/srv/{:x}/{}""#, self.bits() >> 40, self.below(10));
            }
            _ => {
                out.push('"');
                let odd = self.odd && self.one_in(6);
                if odd && self.one_in(2) {
                    out.push_str(["\u{feff}", r"\ufeff"][self.pick(2)]);
                }
                for _ in 0..self.below(12) {
                    self.piece(odd, out);
                }
                out.push('"');
            }
        }
    }

    /// A piece of a string, as it is written in JSON.
    fn piece(&mut self, odd: bool, out: &mut String) {
        let plain = ["plain words", "x", "  ", "é", "ß", "漢字", "😀", "\u{7f}", "\u{2028}", "\u{10ffff}"];
        let escaped = [
            r#"\""#,
            r"\\",
            r"\/",
            r"\b",
            r"\f",
            r"\n",
            r"\r",
            r"\t",
            r"\u0000",
            r"\u001F",
            r"\u00e9",
            r"\u20ac",
            r"\ud83d\ude00",
            r"\uDBFF\uDFFF",
            r"\u0041",
            r"\u2028",
            r"\ufffd",
        ];
        match self.below(8) {
            0..=3 => out.push_str(plain[self.pick(plain.len())]),
            4 | 5 => out.push_str(escaped[self.pick(escaped.len())]),
            6 if odd => out.push_str([r"\ud800", r"\udc00x"][self.pick(2)]),
            _ => out.push(char::from(b'a' + u8::try_from(self.below(26)).unwrap_or_default())),
        }
    }

    fn comma(&mut self, n: u64, out: &mut String) {
        if n > 0 {
            out.push_str(if self.one_in(8) { " , " } else { "," });
        }
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or_default()
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.bits() >> 11) % end
    }

    /// The next number of xorshift64*.
    fn bits(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

impl Iterator for Messages {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        Some(self.message())
    }
}
