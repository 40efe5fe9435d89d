//! Lines, tail and bounds of a child's standard error.

use std::io::Write as _;

use super::*;

fn cut(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut lines = Lines::default();
    let mut out = Vec::new();
    for chunk in chunks {
        lines.push(chunk, &mut |line: &[u8]| out.push(line.to_vec()));
        assert!(lines.partial.len() <= MAX_STDERR_LINE);
    }
    lines.finish(&mut |line: &[u8]| out.push(line.to_vec()));
    out
}

#[test]
fn lines_do_not_depend_on_chunks() {
    let text = b"one\r\n\ntwo \xff\nlast";
    let whole = cut(&[text]);
    assert_eq!(whole, [&b"one"[..], b"", b"two \xff", b"last"]);
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(cut(&bytes), whole);
}

#[test]
fn long_lines_come_in_pieces() {
    let text = vec![b'x'; 2 * MAX_STDERR_LINE + 1];
    for size in [1, 100, MAX_STDERR_LINE, text.len()] {
        let chunks: Vec<&[u8]> = text.chunks(size).collect();
        let lens: Vec<usize> = cut(&chunks).iter().map(Vec::len).collect();
        assert_eq!(lens, [MAX_STDERR_LINE, MAX_STDERR_LINE, 1], "chunks of {size}");
    }
}

#[test]
fn tail_keeps_the_end_and_counts_the_rest() {
    let mut tail = StderrTail::default();
    assert!(tail.is_empty());
    tail.push(b"first\n");
    assert_eq!((tail.text().as_str(), tail.dropped()), ("first\n", 0));
    for number in 0..10_000 {
        tail.push(format!("line {number}\n").as_bytes());
    }
    assert!(tail.text().ends_with("line 9999\n"));
    assert!(tail.text().starts_with("line "), "a cut first line is left out");
    assert_eq!(tail.bytes.len(), MAX_STDERR_TAIL);
    let huge = vec![b'y'; 3 * MAX_STDERR_TAIL];
    let before = tail.dropped();
    tail.push(&huge);
    assert_eq!(tail.text().len(), MAX_STDERR_TAIL);
    assert_eq!(tail.dropped(), before + huge.len() as u64);
}

fn drain_for_budget() -> (usize, Drained) {
    let (read, write) = std::io::pipe().unwrap();
    let read = OwnedFd::from(read);
    crate::child::set_nonblocking(read.as_fd()).unwrap();
    let write = OwnedFd::from(write);
    rustix::pipe::fcntl_setpipe_size(&write, 4 * BUDGET).unwrap();
    let mut write = std::fs::File::from(write);
    write.write_all(&vec![b'z'; 2 * BUDGET]).unwrap();
    let mut drain = StderrDrain::new(read);
    let mut count = 0;
    let drained = drain.drain(|line| count += line.len());
    assert_eq!(drain.drain(|_| {}), Drained::More);
    assert_eq!(drain.drain(|_| {}), Drained::WouldBlock);
    write.write_all(b"end").unwrap();
    drop(write);
    let mut last = Vec::new();
    assert_eq!(drain.drain(|line| last = line.to_vec()), Drained::Ended);
    assert!(last.ends_with(b"end"));
    (count, drained)
}

#[test]
fn one_call_reads_a_bounded_amount() {
    let (count, drained) = drain_for_budget();
    assert_eq!(drained, Drained::More);
    assert!(count <= BUDGET, "{count}");
}

#[test]
fn finish_hands_out_what_is_left_while_somebody_holds_the_pipe() {
    let (read, mut write) = std::io::pipe().unwrap();
    let read = OwnedFd::from(read);
    crate::child::set_nonblocking(read.as_fd()).unwrap();
    write.write_all(b"a\nlast words").unwrap();
    let mut lines = Vec::new();
    let tail = StderrDrain::new(read).finish(|line| lines.push(line.to_vec()));
    assert_eq!(lines, [&b"a"[..], b"last words"]);
    assert_eq!(tail.text(), "a\nlast words");
}
