//! `encode` and `decode` on the outside: bytes in, bytes out, what is said, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PING_VALUE: &str = "e7030ce503322e3004e3020ae50470696e67";
const PING_FRAME: &str = "120101e7030ce503322e3004e3020ae50470696e67";

fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lumen"));
    command.args(args).env_remove("RUST_LOG");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs it on this input, which comes in pieces of so many bytes.
fn in_pieces(args: &[&str], input: &[u8], piece: usize) -> Output {
    let mut child = start(args);
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        for piece in input.chunks(piece) {
            // It may have ended already.
            if stdin.write_all(piece).is_err() {
                break;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn run(args: &[&str], input: impl AsRef<[u8]>) -> Output {
    in_pieces(args, input.as_ref(), usize::MAX)
}

/// Runs it and asserts that it went well.
fn out(args: &[&str], input: impl AsRef<[u8]>) -> Vec<u8> {
    let output = run(args, input);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    output.stdout
}

/// Runs it and asserts that it ended with 1 and said all of this in one line.
fn failed(args: &[&str], input: impl AsRef<[u8]>, said: &[&str]) -> Vec<u8> {
    let output = run(args, input);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{args:?}: {stderr}");
    assert!(stderr.starts_with("lumen: ") && stderr.lines().count() == 1, "{stderr}");
    for part in said {
        assert!(stderr.contains(part), "no {part:?} in {stderr}");
    }
    output.stdout
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Returns type and flags of each frame.
fn kinds(frames: &[u8]) -> Vec<String> {
    let lines = text(&out(&["decode", "--frames"], frames));
    let kind = |line: &str| {
        let (_, from_type) = line.split_once(",\"type\":").unwrap();
        from_type.split_once(",\"header\"").unwrap().0.to_owned()
    };
    lines.lines().map(kind).collect()
}

fn with_number(number: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":[{number}]}}\n")
}

#[test]
fn values_byte_for_byte() {
    for (json, value) in [
        (PING, PING_VALUE),
        (r#"["tool","x"]"#, "e602e400e50178"),
        ("2147483648", "e38080808010"),
        ("1718000000000", "e380f0bc8c8064"),
        ("9007199254740993", "e38280808080808020"),
        ("-9223372036854775808", "e3ffffffffffffffffff01"),
        ("3.14", "e21f85eb51b81e0940"),
        ("\"\u{1f600}\"", "e504f09f9880"),
        ("null", "e0"),
        (r#"{"b":1,"a":2,"b":3}"#, "e703ff0162e302ff0161e304ff0162e306"),
    ] {
        assert_eq!(hex(&out(&["encode", "--value"], json)), value, "{json}");
        assert_eq!(text(&out(&["decode", "--value"], bytes(value))), format!("{json}\n"));
    }
}

#[test]
fn frames_byte_for_byte() {
    assert_eq!(hex(&out(&["encode"], PING)), PING_FRAME);
    assert_eq!(hex(&out(&["encode"], "{\"id\":1}\n")), "050201e70104e302");
    assert_eq!(hex(&out(&["encode", "--plain"], "{\"id\":1}\n")), "0802007b226964223a317d");
}

#[test]
fn what_goes_in_comes_out() {
    let mut lines = format!("{PING}\n");
    lines.push_str(
        "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\\\\\\u0001\",\"result\":{\"z\":[],\"a\":{},\"z\":null}}\n",
    );
    lines.push_str("[{\"id\":1,\"method\":\"a\"},{\"method\":\"b\"}]\n");
    for number in [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1e2",
        "1E+2",
        "0.1",
        "5e-324",
        "1e400",
        "9223372036854775807",
        "9223372036854775808",
        "0.1000000000000000055511151231257827",
        "123456789012345680000",
    ] {
        lines.push_str(&with_number(number));
    }
    lines.push_str(&with_number("\"\\ud800\""));
    for args in [&["encode", "--plain"][..], &["encode"]] {
        let back = text(&out(&["decode"], out(args, &lines)));
        assert_eq!(back, lines, "{args:?}");
    }
    // Of an exact value, the number is kept and not its spelling.
    let back = text(&out(&["decode"], out(&["encode", "--exact"], &lines)));
    for (line, back) in lines.lines().zip(back.lines()) {
        let number = |line: &str| line.split_once("\"params\":[")?.1.split_once(']')?.0.parse::<f64>().ok();
        assert!(line == back || number(line).unwrap().to_bits() == number(back).unwrap().to_bits(), "{back}");
    }
    assert_eq!(back.lines().count(), lines.lines().count());
}

#[test]
fn type_by_shape_and_compressed_only_for_those_that_keep_it() {
    let wide = with_number(&["1"; 1025].join(","));
    let deep = with_number(&format!("{}{}", "[".repeat(40), "]".repeat(40)));
    let cases = [
        (PING, "REQUEST", [true, true]),
        ("{\"id\":null,\"error\":{}}", "RESPONSE", [true, true]),
        ("{\"method\":\"x\"}", "NOTIFY", [true, true]),
        ("[{\"method\":\"x\"},{\"id\":1,\"method\":\"y\"}]", "REQUEST", [true, true]),
        ("[{\"method\":\"x\"},{\"method\":\"y\"}]", "NOTIFY", [true, true]),
        ("[{\"id\":1,\"result\":1}]", "RESPONSE", [true, true]),
        (&with_number("1.0"), "NOTIFY", [false, true]),
        (&with_number("-0.0"), "NOTIFY", [false, true]),
        (&wide, "NOTIFY", [false, true]),
        (&deep, "NOTIFY", [false, true]),
        (&with_number("1.5"), "NOTIFY", [true, true]),
        (&with_number("4294967296"), "NOTIFY", [true, true]),
        (&with_number("1e400"), "NOTIFY", [false, false]),
    ];
    for (line, kind, is_compressed) in cases {
        let ways: [&[&str]; 3] = [&["encode"], &["encode", "--exact"], &["encode", "--plain"]];
        for (args, is_compressed) in ways.into_iter().zip([is_compressed[0], is_compressed[1], false]) {
            let flags = if is_compressed { "\"COMPRESSED\"" } else { "" };
            assert_eq!(
                kinds(&out(args, line)),
                [format!("\"{kind}\",\"flags\":[{flags}]")],
                "{args:?} {line}"
            );
        }
    }
}

#[test]
fn every_frame_as_a_line() {
    let mut frames = bytes(PING_FRAME);
    frames.extend(b"\x2b\x0f\x00{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}\n");
    frames.extend(bytes("040a0001000000")); // A heartbeat.
    frames.extend(bytes("0203006869")); // A notification of "hi", which is no JSON.
    frames.extend(b"\x80\x0d\x00\x02\x04{\"id\": \r\n1}\r\n"); // A longer length than it needs.
    frames.extend(bytes("060e012a0000000000")); // A stream pauses.
    frames.extend(bytes("01110a00")); // Encrypted and more, of no known type.
    frames.extend(bytes("050f01e70104e302")); // A probe that is a value.
    let expected = format!(
        "{{\"offset\":0,\"type\":\"REQUEST\",\"flags\":[\"COMPRESSED\"],\"header\":3,\"payload\":18,\"message\":{PING}}}
{{\"offset\":21,\"type\":\"PROBE\",\"flags\":[],\"header\":3,\"payload\":43,\"message\":null,\"json\":{{\"v\":1,\"caps\":[\"compression\",\"streaming\"]}}}}
{{\"offset\":67,\"type\":\"HEARTBEAT\",\"flags\":[],\"header\":3,\"payload\":4,\"message\":null,\"hex\":\"01000000\"}}
{{\"offset\":74,\"type\":\"NOTIFY\",\"flags\":[],\"header\":3,\"payload\":2,\"message\":null,\"hex\":\"6869\"}}
{{\"offset\":79,\"type\":\"RESPONSE\",\"flags\":[\"PRIORITY\"],\"header\":5,\"payload\":13,\"message\":{{\"id\":   1}}}}
{{\"offset\":97,\"type\":\"FLOW_CTL\",\"flags\":[\"PAUSE\"],\"header\":3,\"payload\":6,\"message\":null,\"hex\":\"2a0000000000\"}}
{{\"offset\":106,\"type\":\"0x11\",\"flags\":[\"ENCRYPTED\",\"FRAGMENTED\"],\"header\":3,\"payload\":1,\"message\":null,\"hex\":\"00\"}}
{{\"offset\":110,\"type\":\"PROBE\",\"flags\":[\"COMPRESSED\"],\"header\":3,\"payload\":5,\"message\":null,\"json\":{{\"id\":1}}}}
"
    );
    for piece in [1, 7, usize::MAX] {
        let output = in_pieces(&["decode", "--frames"], &frames, piece);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), expected.clone()));
    }
    let output =
        failed(&["decode"], &frames, &["stdin: byte 77: not JSON", "NOTIFY frame at byte 74; --frames"]);
    assert_eq!(text(&output), format!("{PING}\n"), "no frames but those of messages");
}

#[test]
fn a_bad_line_is_named_and_what_came_before_is_written() {
    let cases = [
        ("\r\n{}\n", "line 4: not a JSON-RPC message: no method, id, result or error; "),
        ("{\"id\":1,}\n", "line 3: not JSON at byte 8; "),
        ("\n\n\n  hello\n", "line 6: no JSON object or array: \"hello\"; "),
        ("{\"id\":null,\"method\":\"x\"}\n", "line 3: a request must not have the id null; "),
        ("[]", "line 3: not a JSON-RPC message: an empty batch; "),
        ("{\"id\":1,\"id\":1}", "line 3: member \"id\" occurs twice; "),
        ("{\"id\":1", "line 3: not JSON at byte 7; "),
        ("{\"id\":1}{\"id\":2}", "line 3: not JSON at byte 8; "),
        ("{\"method\":\"\u{1b}[31m\"}", "line 3: not JSON at byte 11; "),
    ];
    for (bad, said) in cases {
        let output = failed(&["encode"], format!("{PING}\n\n{bad}"), &["lumen: stdin: ", said, "--value"]);
        assert_eq!(hex(&output), PING_FRAME, "{bad}");
    }
    failed(&["encode"], b"{\"id\":\"\xff\"}", &["line 1: not UTF-8 at byte 7"]);
    failed(&["encode"], format!("{PING}\nhello\n{PING}\n{{\n"), &["line 2: "]);
}

#[test]
fn broken_frames_are_named_and_what_came_before_is_printed() {
    let cases = [
        ("050201e70104e202", "byte 29: the value ends early, in the RESPONSE frame at byte 21; --frames"),
        ("020101fa00", "byte 24: unknown tag 0xfa, in the REQUEST frame at byte 21; --frames"),
        ("0102007b", "byte 25: not JSON, in the RESPONSE frame at byte 21; --frames"),
        ("01020022", "byte 25: not JSON, in the RESPONSE frame at byte 21; --frames"),
        ("010200ff", "byte 24: not UTF-8, in the RESPONSE frame at byte 21; --frames"),
        ("010102e0", "byte 21: ENCRYPTED is not supported; --frames"),
        ("010108e0", "byte 21: FRAGMENTED is not supported; --frames"),
        ("000000", "byte 21: frame of reserved type 0x00; --frames"),
        ("000110", "byte 21: frame with reserved flags 0x10; --frames"),
        ("7b2269", "byte 21: no frame starts with 0x7b; this looks like JSON text, which `lumen encode`"),
        ("ff", "byte 21: no frame starts with 0xff; "),
        ("40ffffffffffffffffffff01", "byte 21: a length that does not fit 64 bits; "),
        ("c001000004010000", "byte 21: message of 67108865 bytes is longer than 67108864; "),
    ];
    for (broken, said) in cases {
        let mut frames = bytes(PING_FRAME);
        frames.extend(bytes(broken));
        frames.extend(bytes(PING_FRAME));
        let output = failed(&["decode"], &frames, &["lumen: stdin: ", said]);
        assert_eq!(text(&output), format!("{PING}\n"), "{broken}");
    }
}

#[test]
fn frames_goes_on_behind_a_frame_that_is_broken() {
    let mut frames = bytes("020101fa00000000");
    frames.extend(bytes(PING_FRAME));
    let said = "byte 3: unknown tag 0xfa, in the REQUEST frame at byte 0";
    let output = failed(&["decode", "--frames"], &frames, &[said]);
    let expected = format!(
        "{{\"offset\":0,\"type\":\"REQUEST\",\"flags\":[\"COMPRESSED\"],\"header\":3,\"payload\":2,\"message\":null,\"hex\":\"fa00\",\"problem\":\"{said}\"}}
{{\"offset\":5,\"type\":\"0x00\",\"flags\":[],\"header\":3,\"payload\":0,\"message\":null,\"hex\":\"\",\"problem\":\"byte 5: frame of reserved type 0x00\"}}
{{\"offset\":8,\"type\":\"REQUEST\",\"flags\":[\"COMPRESSED\"],\"header\":3,\"payload\":18,\"message\":{PING}}}
"
    );
    assert_eq!(text(&output), expected);
}

#[test]
fn a_stream_cut_anywhere_is_named_by_its_last_frame() {
    let frames = [bytes(PING_FRAME), bytes("050201e70104e302")].concat();
    for end in 0..=frames.len() {
        let lines = match end {
            0..21 => String::new(),
            21..29 => format!("{PING}\n"),
            _ => format!("{PING}\n{{\"id\":1}}\n"),
        };
        let cut = &frames[..end];
        if [0, 21, 29].contains(&end) {
            assert_eq!(text(&out(&["decode"], cut)), lines);
        } else {
            let start = if end < 21 { 0 } else { 21 };
            let said =
                format!("stdin: byte {start}: the input ends inside this frame, after {} bytes", end - start);
            assert_eq!(text(&failed(&["decode"], cut, &[&said])), lines);
        }
    }
}

#[test]
fn nothing_in_nothing_out() {
    for args in [&["encode"][..], &["encode", "--plain"], &["decode"], &["decode", "--frames"]] {
        assert_eq!(out(args, ""), b"");
    }
    assert_eq!(out(&["encode"], " \r\n\n\t"), b"");
    failed(&["encode", "--value"], "", &["stdin: not JSON at byte 0; "]);
    failed(&["decode", "--value"], "", &["stdin: byte 0: the value ends early; "]);
}

#[test]
fn any_pieces_give_the_same() {
    let lines = format!("{PING}\n\n{}{}", with_number("1.0"), with_number("2"));
    let frames = out(&["encode"], &lines);
    for piece in [1, 3] {
        assert_eq!(in_pieces(&["encode"], lines.as_bytes(), piece).stdout, frames);
        assert_eq!(in_pieces(&["decode"], &frames, piece).stdout, out(&["decode"], &frames));
        assert_eq!(hex(&in_pieces(&["encode", "--value"], PING.as_bytes(), piece).stdout), PING_VALUE);
    }
}

#[test]
fn a_message_is_written_before_the_next_is_read() {
    let mut child = start(&["encode"]);
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for _ in 0..3 {
        stdin.write_all(format!("{PING}\n").as_bytes()).unwrap();
        let mut frame = [0; 21];
        stdout.read_exact(&mut frame).unwrap();
        assert_eq!(hex(&frame), PING_FRAME);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_big_message_passes_and_a_bigger_one_does_not() {
    let line = with_number(&format!("\"{}\"", "x".repeat(20_000_000)));
    let frames = out(&["encode"], &line);
    assert!(frames.len() < line.len() && kinds(&frames)[0].contains("COMPRESSED"));
    assert!(out(&["decode"], &frames) == line.as_bytes());

    // As a value it is longer than a frame may be.
    let frames = out(&["encode", "--exact"], with_number(&["1.5"; 7_500_000].join(",")));
    assert_eq!((frames[0], &frames[5..7]), (0xc0, &[0x03, 0x00][..]), "a notification as text");

    let line = with_number(&format!("\"{}\"", "x".repeat(64 * 1024 * 1024)));
    let said = "longer than 67108864 bytes, the most of one message; ";
    assert_eq!(hex(&failed(&["encode"], format!("{PING}\n{line}"), &["line 2: ", said])), PING_FRAME);
    failed(&["encode", "--value"], &line, &["stdin: more than 67108864 bytes"]);
}

#[test]
fn a_value_says_what_it_cannot_hold() {
    let cases = [
        ("1.0", "such as 1.0; --exact"),
        ("[-0.0,1.0]", "negative zero; --exact"),
        ("[[", "not JSON at byte 2; "),
        ("1 2", "not JSON at byte 2; "),
        ("1e400", "cannot hold this document exactly"),
    ];
    for (json, said) in cases {
        assert_eq!(failed(&["encode", "--value"], json, &["lumen: stdin: ", said]), b"");
    }
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    failed(&["encode", "--value"], &deep, &["nested deeper than 32; --exact"]);
    let wide = format!("[{}]", ["1"; 1025].join(","));
    failed(&["encode", "--value"], &wide, &["more than 1024 members in one array or object; --exact"]);
    assert_eq!(hex(&out(&["encode", "--value", "--exact"], "1.0")), "e2000000000000f03f");
    failed(&["encode", "--value", "--exact"], "1e400", &["cannot hold"]);
    failed(&["decode", "--value"], b"\xe0\x0a\x0a", &["byte 2: bytes after the value; "]);
    assert_eq!(out(&["decode", "--value"], b"\xe0\x0a"), b"null\n");
}

#[test]
fn nobody_who_reads_is_a_quiet_end() {
    let lines = with_number("1").repeat(100_000);
    let frames = out(&["encode"], &lines);
    for (args, input) in [(&["encode"][..], lines.as_bytes()), (&["decode"], &frames)] {
        let mut child = start(args);
        drop(child.stdout.take());
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(input);
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{args:?}");
    }
}

#[test]
fn streams_that_others_made_non_blocking_are_waited_for() {
    let ((mut to, stdin), (mut from, stdout)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    stdin.set_nonblocking(true).unwrap();
    stdout.set_nonblocking(true).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lumen"))
        .args(["encode", "--plain"])
        .stdin(OwnedFd::from(stdin))
        .stdout(OwnedFd::from(stdout))
        .spawn()
        .unwrap();
    // Between two messages it finds nothing to read, and of many at once no room to write.
    for _ in 0..100 {
        to.write_all(format!("{PING}\n").as_bytes()).unwrap();
        from.read_exact(&mut [0; PING.len() + 3]).unwrap();
    }
    let lines = format!("{PING}\n").repeat(50_000);
    let writer = thread::spawn(move || to.write_all(lines.as_bytes()).unwrap());
    let mut frames = Vec::new();
    from.read_to_end(&mut frames).unwrap();
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(frames.len(), 50_000 * (PING.len() + 3));
}

#[test]
fn files_are_read_and_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("codec-files");
    fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (lines, frames, back) = (path("lines"), path("frames"), path("back"));
    fs::write(&lines, format!("{PING}\n")).unwrap();
    fs::write(&frames, "longer than what it is written over with, so that it must be emptied").unwrap();
    assert_eq!(out(&["encode", &lines, "-o", &frames], ""), b"");
    assert_eq!(hex(&fs::read(&frames).unwrap()), PING_FRAME);
    assert_eq!(out(&["decode", "-", "--output", &back], bytes(PING_FRAME)), b"");
    assert_eq!(fs::read_to_string(&back).unwrap(), format!("{PING}\n"));
    assert_eq!(text(&out(&["decode", &frames, "-o", "-"], "")), format!("{PING}\n"));

    failed(&["encode", &lines, "-o", &lines], "", &["cannot write to ", "it is the input; "]);
    assert_eq!(fs::read_to_string(&lines).unwrap(), format!("{PING}\n"), "nothing happened to it");
    failed(&["decode", &path("none")], "", &["cannot open ", "none: No such file"]);
    failed(&["decode", folder.to_str().unwrap()], "", &["cannot read ", "Is a directory"]);
    failed(&["decode", "-o", &path("none/none")], "", &["cannot write to ", "No such file"]);
    failed(&["encode", "-o", "/dev/full"], PING, &["cannot write to /dev/full: No space left"]);
    failed(&["encode", &frames], "", &[&format!("{frames}: line 1: ")]);
}

#[test]
fn no_frames_on_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let name = ptsname(&main, Vec::new()).unwrap().into_string().unwrap();
    let terminal = || fs::File::options().read(true).write(true).open(&name).unwrap();
    let lumen = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lumen"));
        let streams = command.args(args).env_remove("RUST_LOG").stderr(Stdio::piped());
        streams.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let refused = |output: Output| {
        assert_eq!(output.status.code(), Some(2));
        text(&output.stderr)
    };
    let said = refused(lumen(&["encode"]).stdout(terminal()).output().unwrap());
    assert!(said.contains("not written to a terminal") && said.contains("-o FILE"), "{said}");
    let said = refused(lumen(&["decode"]).stdin(terminal()).output().unwrap());
    assert!(said.contains("not read from a terminal"), "{said}");
    assert!(lumen(&["encode", "-o", "-"]).stdout(terminal()).status().unwrap().success());
}

#[test]
fn help_and_wrong_command_lines() {
    for command in ["encode", "decode"] {
        let help = text(&out(&[command, "--help"], ""));
        for part in ["Usage:", "Examples:", "Exit codes:", "--value", "--output"] {
            assert!(help.contains(part), "no {part} in {help}");
        }
    }
    for args in [
        &["encode", "--plain", "--exact"][..],
        &["encode", "--plain", "--value"],
        &["decode", "--frames", "--value"],
        &["decode", "--exact"],
        &["encode", "a", "b"],
    ] {
        assert_eq!(run(args, "").status.code(), Some(2), "{args:?}");
    }
}

/// Vectors that other implementations made lie beside the workspace, if at all.
#[test]
fn values_of_others() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/goldens");
    if !folder.is_dir() {
        return;
    }
    let shared: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("shared_vectors.json")).unwrap()).unwrap();
    for vector in shared["vectors"].as_array().unwrap() {
        let path: PathBuf = folder.join(format!("{}.lumen", vector["name"].as_str().unwrap()));
        let value = fs::read(&path).unwrap();
        let json = out(&["decode", "--value", path.to_str().unwrap()], "");
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), vector["value"], "{}", path.display());
        assert_eq!(hex(&out(&["encode", "--value"], json)), hex(&value), "{}", path.display());
    }
}
