//! `lumen doctor` on child programs that each have one fault: exactly that one is found, and a sound one has none.

#[path = "../cases/support.rs"]
#[expect(dead_code, unused_imports, unused_macros, reason = "some of it is for other suites")]
mod support;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::process::Command;

use lumen_tests::procs::{Mark, lumen, sibling};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use support::{Finished, Session, child_server, temp};

fn doctor(options: &[&str], server: impl IntoIterator<Item = impl Into<OsString>>) -> Command {
    let mut command = Command::new(lumen());
    command.arg("doctor").args(options).arg("--").args(server.into_iter().map(Into::into));
    command
}

/// Examines a server, and returns its report. Nothing that was started is left.
#[track_caller]
fn examined(options: &[&str], server: Vec<OsString>) -> Value {
    let Finished { code, lines, stderr } =
        Session::start(doctor(&[&["--json"], options].concat(), server)).finish();
    assert_eq!(stderr, "");
    let [line] = lines.as_slice() else { panic!("{} lines", lines.len()) };
    let report: Value = serde_json::from_slice(line).unwrap();
    assert_eq!(report["schema"], 1);
    assert_eq!(report["healthy"], report["findings"].as_array().unwrap().is_empty());
    assert_eq!(code, Some(i32::from(report["healthy"] == false)), "{report}");
    for finding in report["findings"].as_array().unwrap() {
        assert!(finding["advice"].as_str().unwrap().len() > 20, "{finding}");
    }
    report
}

fn codes(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// Makes one test for each fault: options of `child_server`, and of `doctor`, and what is to be found.
macro_rules! faults {
    ($($name:ident: $server:expr, $options:expr => $codes:expr;)+) => {
        $(#[test] fn $name() {
            let report = examined(&$options, child_server(&$server));
            let expected: &[&str] = &$codes;
            assert_eq!(codes(&report), expected, "{report}");
        })+
    };
}

/// For servers that leave something unanswered.
const SHORT: [&str; 2] = ["--timeout", "3"];

faults! {
    sound: [], [] => [];
    sound_modern: ["--modern"], [] => [];
    sound_modern_only: ["--modern-only"], [] => [];
    sound_slow: ["--start-after", "700"], [] => [];
    sound_log: ["--stderr-flood", "300000", "--flood-on-probe", "300000"], [] => [];
    noise_at_start: ["--banner", "Server started"], [] => ["noise"];
    noise_between: ["--noise-every"], [] => ["noise"];
    cr: ["--crlf"], [] => ["cr"];
    invalid_utf8: ["--invalid-utf8"], [] => ["invalid_utf8"];
    no_id: ["--no-id"], [] => ["no_id"];
    twice: ["--twice"], [] => ["answered_twice"];
    unknown_id: ["--unasked", "99"], [] => ["unknown_id"];
    unknown_id_of_another_type: ["--unasked", "\"1\""], [] => ["unknown_id"];
    unknown_progress: ["--progress", "7"], [] => ["unknown_progress"];
    late_progress: ["--late-progress"], [] => ["unknown_progress"];
    unanswered: ["--unanswered", "ping"], SHORT => ["unanswered"];
    refused: ["--refuse", "tools/list"], [] => ["refused"];
    ended: ["--exit-on", "tools/list"], [] => ["ended"];
    ended_in_modern: ["--modern-only", "--exit-on", "tools/list"], [] => ["ended"];
    ended_at_initialize: ["--modern", "--exit-on", "initialize"], [] => ["ended"];
    exits_at_discover: ["--exit-on", "server/discover"], [] => ["exits_at_discover"];
    silent_at_discover: ["--unanswered", "server/discover"], SHORT => ["unanswered"];
    exits_at_probe: ["--exit-on-probe"], [] => ["exits_at_probe"];
    deaf_after_probe: ["--deaf-on-probe"], SHORT => ["deaf_after_probe"];
    minds_offer: ["--exit-on-extension"], [] => ["minds_offer"];
    lumen_broken: ["--ack-only"], SHORT => ["lumen_broken"];
    owed_at_eof: ["--lose-at-eof"], [] => ["owed_at_eof"];
    stays_after_eof: ["--ignore-eof"], SHORT => ["stays_after_eof"];
    ignores_term: ["--ignore-term"], SHORT => ["stays_after_eof", "ignores_term"];
    bad_exit: ["--exit-code", "3"], [] => ["bad_exit"];
    leftover: ["--linger-grandchild", temp("id").to_str().unwrap()], [] => ["leftover_processes"];
    refuses_all: ["--refuse", "initialize"], [] => ["no_era"];
    ends_at_once: ["--exit-at-start", "3"], [] => ["no_answer"];
    silent: ["--silent"], ["--timeout", "1", "--start-timeout", "1"] => ["no_answer"];
}

#[test]
fn the_report_has_every_member_whatever_was_found() {
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let all = "capabilities eof eras findings first_answer_ms healthy lumen noise probe program schema server starts";
    let good = examined(&[], child_server(&["--modern", "--banner", "a\u{1b}[2J"]));
    let bad = examined(&[], child_server(&["--exit-at-start", "1"]));
    assert_eq!(names(&good), all);
    assert_eq!(names(&bad), all);
    assert_eq!(names(&good["eof"]), "answered asked exit_code exit_ms signal");
    assert_eq!((&good["eof"]["asked"], &good["eof"]["answered"]), (&2.into(), &2.into()));
    assert_eq!(good["eof"]["exit_code"], 0);
    assert_eq!(good["eras"]["legacy"], "2025-11-25");
    assert_eq!(good["eras"]["modern"][0], "2026-07-28");
    assert_eq!((&good["lumen"]["probe"], &good["lumen"]["offer"]), (&false.into(), &false.into()));
    assert_eq!(good["probe"]["reaction"], "ignores");
    assert_eq!((&good["noise"]["lines"], &good["noise"]["quoted"][0]), (&5.into(), &"a\u{1b}[2J".into()));
    assert_eq!((&good["findings"][0]["count"], &good["starts"]), (&5.into(), &5.into()));
    assert!(bad["eof"].is_null() && bad["server"].is_null() && bad["first_answer_ms"].is_null());
}

#[test]
fn reactions_to_a_probe_are_told_apart() {
    for (option, reaction, is_lumen) in [
        ("--stray-on-probe", "stray", false),
        ("--exit-on-probe", "exits", false),
        ("--ack-only", "answers", true),
    ] {
        let report = examined(&SHORT, child_server(&[option]));
        assert_eq!(report["probe"]["reaction"], reaction);
        assert_eq!(report["lumen"]["probe"], is_lumen);
    }
    let stray = examined(&[], child_server(&["--stray-on-probe", "--banner", "up"]));
    assert!(stray["probe"]["line"].as_str().unwrap().contains("-32700"), "{stray}");
    assert_eq!((codes(&stray), &stray["noise"]["lines"]), (vec!["noise"], &5.into()));
    let noisy = examined(&[], child_server(&["--banner", "up"]));
    assert_eq!(noisy["probe"]["reaction"], "ignores");
}

#[test]
fn a_server_with_lumen_is_asked_by_probe_and_by_offer() {
    let server: [OsString; 4] = [lumen().into(), "wrap".into(), "--".into(), sibling("child_server").into()];
    let report = examined(&[], server.to_vec());
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!((&report["lumen"]["probe"], &report["lumen"]["offer"]), (&true.into(), &true.into()));
    assert_eq!(report["starts"], 6);
}

/// What has left the server's group is found too, and left alone.
#[test]
fn a_process_that_left_the_group_is_found() {
    let script = format!("setsid sleep 1000 & exec {}", sibling("child_server").display());
    let mark = Mark::new();
    let output = mark.put_on(&mut doctor(&["--json"], ["sh", "-c", &script])).output().unwrap();
    // One of each start, or fewer: where the server is ended at once, the process may not have left the group yet.
    let left = mark.processes();
    for pid in &left {
        let pid = Pid::from_raw(i32::try_from(*pid).unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(codes(&report), ["leftover_processes"], "{report}");
    let [id] = report["findings"][0]["processes"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert!(left.contains(&u32::try_from(id.as_u64().unwrap()).unwrap()), "{report}: {left:?}");
}

#[test]
fn people_read_what_was_found_and_what_to_do() {
    let finished =
        Session::start(doctor(&[], child_server(&["--banner", "a\u{1b}[2J", "--exit-code", "3"]))).finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(1), ""));
    let text = finished
        .lines
        .iter()
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect::<Vec<_>>()
        .join("\n");
    for wanted in
        ["findings: 2", "noise: lines on stdout", "bad_exit: ", "exit code 3", "\\u{1b}[2J", "first answer"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert_eq!(text.matches("what to do: ").count(), 2, "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let sound = Session::start(doctor(&[], child_server(&[]))).finish();
    assert_eq!(sound.code, Some(0));
    assert_eq!(sound.lines.last().unwrap(), b"nothing wrong was found");
}

#[test]
fn what_cannot_be_started_is_2_and_arguments_are_not_told() {
    let finished = Session::start(doctor(&["--json"], ["/nonexistent/server", "--token=hunter2"])).finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(2), 0));
    assert!(finished.stderr.contains("/nonexistent/server"), "{}", finished.stderr);
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
    let report = examined(&[], child_server(&["--", "--token=hunter2"]));
    assert!(!report.to_string().contains("hunter2"), "{report}");
}

#[test]
fn told_to_end_it_ends_the_server_too() {
    let fifo = temp("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let session =
        Session::start(doctor(&[], child_server(&["--silent", "--record", fifo.to_str().unwrap()])));
    let mut line = [0; 6];
    File::open(&fifo).unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"start\n");
    session.signal(Signal::TERM);
    let finished = session.finish();
    assert_eq!((finished.code, finished.lines.len()), (Some(1), 0), "{}", finished.stderr);
    assert!(finished.stderr.contains("told to end"), "{}", finished.stderr);
}

#[test]
fn nothing_that_is_asked_has_an_effect() {
    let record = temp("record");
    examined(&[], child_server(&["--modern", "--record", record.to_str().unwrap()]));
    let text = std::fs::read(record).unwrap();
    let mut methods: Vec<String> = text
        .split(|&byte| byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<Value>(line).ok())
        .map(|message| message["method"].as_str().unwrap().to_owned())
        .collect();
    methods.sort();
    methods.dedup();
    assert_eq!(methods, ["initialize", "notifications/initialized", "ping", "server/discover", "tools/list"]);
    let starts = text.split(|&byte| byte == b'\n').filter(|line| line == b"start").count();
    assert_eq!(starts, 5);
}

/// It sends back what it is sent, our own requests too.
#[test]
fn what_only_echoes_is_no_server() {
    let output = doctor(&["--json", "--start-timeout", "1", "--timeout", "1"], ["cat"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(codes(&report), ["no_answer"], "{report}");
}
