//! O-30: arguments, environment and directory arrive as they were given, and no secret leaves by the log.

use std::fs;

use serde_json::{Value, json};

use crate::support::{INITIALIZE, Session, Way, call, child_server, parsed, ping, pong, temp, ways};

ways! {
    arguments: o_30_arguments_connect = Connect, o_30_arguments_wrap = Wrap, o_30_arguments_both = Both;
    environment: o_30_environment_connect = Connect, o_30_environment_wrap = Wrap, o_30_environment_both = Both;
    directory: o_30_directory_connect = Connect, o_30_directory_wrap = Wrap, o_30_directory_both = Both;
    no_secret_in_the_log: o_30_no_secret_in_the_log_connect = Connect, o_30_no_secret_in_the_log_wrap = Wrap,
        o_30_no_secret_in_the_log_both = Both;
}

fn arguments(way: Way) {
    let file = temp("argv");
    let odd = [
        "a b",
        "\"",
        "'",
        "$HOME",
        "${X}",
        "`id`",
        "$(id)",
        "",
        "\\",
        "*",
        "é—漢😀",
        "\t\n",
        "-v",
        "--help",
        "--",
        "--env",
        ";",
        "&&",
        "%PATH%",
        "!",
    ];
    let options = [&["--argv-to", file.to_str().unwrap(), "--"][..], &odd].concat();
    let mut session = way.start(&options);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
    assert_eq!(written(&file)["argv"], json!(options));
}

fn environment(way: Way) {
    let file = temp("env");
    let names = ["O30_INHERITED", "O30_EMPTY", "O30_UNSET", "O30_GIVEN", "O30_GIVEN_EMPTY", "O30_OVERRIDDEN"];
    let mut server = vec!["--argv-to", file.to_str().unwrap()];
    for name in names {
        server.extend(["--env", name]);
    }
    let options =
        ["--env", "O30_GIVEN=a=b $HOME \"é", "--env", "O30_GIVEN_EMPTY=", "--env", "O30_OVERRIDDEN=new"];
    let mut command = way.command_with(&options, child_server(&server));
    command.env("O30_INHERITED", "as it was").env("O30_EMPTY", "").env("O30_OVERRIDDEN", "old");
    command.env_remove("O30_UNSET");
    let mut session = Session::start(command);
    session.send(&[ping(1)]);
    assert_eq!(session.line(), pong(1));
    session.close_input();
    assert_eq!(session.finish().code, Some(0));
    let wanted = json!({
        "O30_INHERITED": "as it was",
        "O30_EMPTY": "",
        "O30_UNSET": null,
        "O30_GIVEN": "a=b $HOME \"é",
        "O30_GIVEN_EMPTY": "",
        "O30_OVERRIDDEN": "new",
    });
    assert_eq!(written(&file)["env"], wanted);
}

fn directory(way: Way) {
    let file = temp("cwd");
    let folder = temp("a folder é");
    fs::create_dir(&folder).unwrap();
    let server = child_server(&["--argv-to", file.to_str().unwrap()]);
    let session = {
        let mut session = Session::start(way.command_with(&["--cwd", folder.to_str().unwrap()], server));
        session.send(&[ping(1)]);
        assert_eq!(session.line(), pong(1));
        session.close_input();
        session.finish()
    };
    assert_eq!(session.code, Some(0));
    assert_eq!(written(&file)["cwd"], json!(folder.canonicalize().unwrap()));
}

fn no_secret_in_the_log(way: Way) {
    let secrets = ["s3cret-inherited", "s3cret-given", "s3cret-argument"];
    for server in [
        child_server(&["--banner", "hello", "--die-mid-line-at", "9"]),
        vec!["/nonexistent/server".into()],
        child_server(&["--exit-at-start", "3"]),
    ] {
        let mut command = way.command_with(&["-vvv", "--env", "O30_GIVEN=s3cret-given"], server);
        command.env("O30_INHERITED", "s3cret-inherited").env_remove("RUST_LOG");
        let mut session = Session::start(command);
        let secret = json!({"text": "s3cret-argument"});
        session.send(&[INITIALIZE.to_owned(), call(1, "echo", secret), ping(9)]);
        for _ in 0..3 {
            let answer = parsed(&session.line());
            assert!(answer["id"].is_i64());
        }
        session.close_input();
        let finished = session.finish();
        assert!(!finished.stderr.is_empty());
        for secret in secrets {
            assert!(!finished.stderr.contains(secret), "{}", finished.stderr);
        }
    }
}

fn written(file: &std::path::Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}
