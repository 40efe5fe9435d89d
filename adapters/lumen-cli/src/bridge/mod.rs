//! `bridge`: own stdio to a server behind a URL.

mod config;
mod report;

use std::io;
use std::os::unix::net::UnixStream;

use lumen_http::{Bridge, Client};
use lumen_proto::http;
use lumen_tokio::Stream;
use tokio::runtime::Builder;

use crate::args;
use crate::exit::Exit;
use crate::relay::{signals, written};
use crate::report::say;
use report::Report;

pub(crate) fn run(args: args::Bridge) -> Exit {
    let http = http::Config::new(String::new()).with_timeout(args.timeout());
    let client = match config::client(args, &|name| std::env::var_os(name)) {
        Ok(client) => client,
        Err(why) => {
            say(&why);
            return Exit::Usage;
        }
    };
    match try_run(http, client) {
        Ok(exit) => exit,
        Err(error) => {
            say(&format!("{error}; check that stdin and stdout are open, and the limits on descriptors"));
            Exit::Failed
        }
    }
}

fn try_run(http: http::Config, client: Client) -> io::Result<Exit> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let exit = runtime.block_on(serve(http, client));
    // The look-up of a name may hang in the system for long.
    runtime.shutdown_background();
    exit
}

async fn serve(http: http::Config, client: Client) -> io::Result<Exit> {
    let signals = UnixStream::from(signals()?);
    let signals = tokio::net::UnixStream::from_std(signals)?;
    let url = client.url().to_string();
    let mut bridge = Bridge::new(http, client, Stream::stdio()?);
    let mut report = Report::new(bridge.client_port(), url);
    let mut exit = None;
    let mut is_told = false;
    loop {
        tokio::select! {
            event = bridge.next_event() => match event {
                Some(event) => exit = report.event(&event).or(exit),
                None => {
                    let exit = exit.unwrap_or(Exit::Failed);
                    return Ok(written(exit, bridge.write_error()));
                }
            },
            _ = signals.readable(), if !is_told => {
                is_told = true;
                bridge.terminate();
            }
        }
    }
}
