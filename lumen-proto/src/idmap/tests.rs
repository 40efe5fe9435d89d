//! The same expectations of the map over every storage.

use std::string::ToString;
use std::vec::Vec;

use super::*;

/// Runs `test` over each storage there is, with room for eight.
macro_rules! over_all {
    ($test:ident) => {
        #[cfg(feature = "alloc")]
        $test(IdMap::new(Growing::with_max_len(8)));
        #[cfg(feature = "heapless")]
        $test(IdMap::new(heapless::Vec::<(WireId, u32), 8>::new()));
    };
}

fn id(value: u64) -> WireId {
    WireId::from_token(value.to_string().as_bytes()).unwrap()
}

#[test]
fn an_entry_is_found_once() {
    fn test(mut map: IdMap<impl Slots<Entry = u32>>) {
        assert_eq!(map.try_insert(10), Ok(id(1)));
        assert_eq!(map.try_insert(20), Ok(id(2)));
        assert_eq!((map.len(), map.is_empty()), (2, false));
        assert_eq!(map.get(id(1)), Some(&10));
        *map.get_mut(id(1)).unwrap() += 1;
        assert_eq!(map.take(id(1)), Some(11));
        assert_eq!((map.take(id(1)), map.get(id(1))), (None, None));
        assert_eq!(map.get_mut(id(1)), None);
        assert_eq!(map.take(id(2)), Some(20));
        assert!(map.is_empty());
        assert_eq!(map.try_insert(30), Ok(id(3)), "an id is not used again");
        assert_eq!(map.take(id(4)), None, "an id that is yet to come");
    }
    over_all!(test);
}

#[test]
fn a_full_map_gives_the_entry_back_and_loses_no_id() {
    fn test(mut map: IdMap<impl Slots<Entry = u32>>) {
        for n in 1..=8 {
            assert_eq!(map.try_insert(n), Ok(id(n.into())));
        }
        assert_eq!(map.try_insert(9), Err(Full(9)));
        assert_eq!(map.len(), 8);
        assert_eq!(map.take(id(3)), Some(3));
        assert_eq!(map.try_insert(9), Ok(id(9)));
        assert_eq!(map.iter().map(|(_, entry)| *entry).collect::<Vec<_>>(), [1, 2, 4, 5, 6, 7, 8, 9]);
    }
    over_all!(test);
}

#[test]
fn draining_takes_what_matches_in_order_and_nothing_else() {
    fn test(mut map: IdMap<impl Slots<Entry = u32>>) {
        for n in [7, 1, 7, 2, 7, 3, 7] {
            map.try_insert(n).unwrap();
        }
        let mut looked_at = Vec::new();
        let sevens = |wire, entry: &u32| {
            looked_at.push(wire);
            *entry == 7
        };
        let taken: Vec<_> = map.drain_where(sevens).collect();
        assert_eq!(taken, [1, 3, 5, 7].map(|n| (id(n), 7)));
        assert_eq!(looked_at, [1, 2, 3, 4, 5, 6, 7].map(id), "each once");
        assert_eq!(map.iter().collect::<Vec<_>>(), [(id(2), &1), (id(4), &2), (id(6), &3)]);
        // One that is not driven to its end leaves the rest.
        assert_eq!(map.drain_where(|_, _| true).next(), Some((id(2), 1)));
        assert_eq!(map.drain_where(|wire, _| wire > id(4)).count(), 1);
        assert_eq!(map.iter().collect::<Vec<_>>(), [(id(4), &2)]);
    }
    over_all!(test);
}

/// Any order of operations does what a plain list of pairs does.
#[test]
fn it_does_what_a_plain_list_does() {
    fn test(mut map: IdMap<impl Slots<Entry = u32>>) {
        let mut list: Vec<(u64, u32)> = Vec::new();
        let mut made = 0u64;
        let mut seed = 1u32;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = seed >> 16;
            let wire = (made + 2).saturating_sub(u64::from(value % 12)).max(1);
            let listed = list.iter().position(|(id, _)| *id == wire);
            match value % 7 {
                0..3 if list.len() < 8 => {
                    made += 1;
                    list.push((made, value));
                    assert_eq!(map.try_insert(value), Ok(id(made)));
                }
                0..3 => assert_eq!(map.try_insert(value), Err(Full(value))),
                3 | 4 => assert_eq!(map.take(id(wire)), listed.map(|at| list.remove(at).1)),
                5 => assert_eq!(map.get(id(wire)), listed.map(|at| &list[at].1)),
                _ => {
                    let drained: Vec<_> = map.drain_where(|_, entry| entry % 5 == value % 5).collect();
                    let (out, kept) = list.into_iter().partition(|(_, entry)| entry % 5 == value % 5);
                    list = kept;
                    let out: Vec<(u64, u32)> = out;
                    assert_eq!(drained, out.into_iter().map(|(n, entry)| (id(n), entry)).collect::<Vec<_>>());
                }
            }
            assert_eq!(map.len(), list.len());
            assert!(map.iter().map(|(id, entry)| (id, *entry)).eq(list.iter().map(|(n, e)| (id(*n), *e))));
        }
    }
    over_all!(test);
}

#[test]
fn a_token_is_a_plain_decimal_integer() {
    for value in [1, 9, 10, 99, 100, 1_234_567_890, (1 << 53) - 1] {
        let wire = id(value);
        assert_eq!(wire.to_string(), value.to_string());
        assert_eq!(&*wire.token(), value.to_string().as_bytes());
    }
    let others: [&[u8]; 20] = [
        b"",
        b"0",
        b"01",
        b"-1",
        b"+1",
        b"1.0",
        b"1e0",
        b"\"1\"",
        b" 1",
        b"1 ",
        b"null",
        b"1_0",
        b"\xb9",
        b"a",
        b"9007199254740992",
        b"9999999999999999",
        b"18446744073709551617",
        b"00000000000000001",
        b"0x1",
        b"-0",
    ];
    for token in others {
        assert_eq!(WireId::from_token(token), None, "{}", token.escape_ascii());
    }
}
