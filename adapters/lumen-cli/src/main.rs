//! The `lumen` command: MCP over stdio, through LUMEN where both sides have it.
//!
//! `main` parses, sets logging up and calls one module a command. stdout is data; where it carries the protocol
//! nothing else may be written to it, not even `--help`.

mod args;
mod bridge;
mod codec;
mod demo;
mod doctor;
mod exit;
mod guard;
mod log;
mod memory;
mod mux;
mod relay;
mod report;
mod runtime;
mod start;

use std::process::ExitCode;

use args::Command;

fn main() -> ExitCode {
    if let Some(exit) = guard::try_run().or_else(start::try_run) {
        return exit;
    }
    let args = match args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(exit) => return exit.into(),
    };
    if let Command::Mux(mux::args::Mux { log: Some(path), .. }) = &args.command
        && let Err(error) = log::to_file(path)
    {
        report::say(&format!("cannot write the log {}: {error}", path.display()));
        return exit::Exit::NotStarted.into();
    }
    log::init(args.verbose);
    let exit = match args.command {
        Command::Connect(connect) => relay::connect(connect),
        Command::Wrap(wrap) => relay::wrap(wrap),
        Command::Mux(mux) => mux::run(mux),
        Command::Status(status) => mux::status(&status),
        Command::Bridge(bridge) => bridge::run(bridge),
        Command::Doctor(doctor) => doctor::run(&doctor),
        Command::Demo(demo) => demo::run(&demo),
        Command::Encode(encode) => codec::encode(&encode),
        Command::Decode(decode) => codec::decode(&decode),
        Command::DemoServer => demo::server::run(),
    };
    exit.into()
}
