//! A driver that is dropped, at whatever await, leaves no process behind. A file of its own, because it looks at
//! all children of the test process.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use common::{Event, Toy, command};
use lumen_tokio::Driver;

/// Tells our grandchildren from other processes.
const MARK: &str = "98761.25";

async fn session() {
    let mut driver = Driver::new(Toy::spawning(), command(&format!("sleep {MARK} & exec cat")));
    driver.with(|toy| toy.send(&[b'x'; 200_000]));
    let mut got = 0;
    while let Some(event) = driver.next_event().await {
        if let Event::Data(bytes) = event {
            got += bytes.len();
        }
        if got == 200_000 {
            driver.close().await;
        }
    }
    assert_eq!(got, 200_000);
}

/// Polls a future until it has been pending so many times, then drops it; returns whether it was ready before.
async fn give_up_after(pending: usize, future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    let mut left = pending;
    std::future::poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if left == 0 => Poll::Ready(false),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

/// Finds processes by their parent's id and their command line.
fn processes(is_wanted: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let paths = fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let wanted = paths.filter_map(|path| {
        let stat = fs::read_to_string(path.join("stat")).ok()?;
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?;
        let command = fs::read_to_string(path.join("cmdline")).ok()?;
        is_wanted(parent, &command).then_some(stat)
    });
    wanted.collect()
}

fn assert_nothing_left(awaits: usize) {
    let us = std::process::id().to_string();
    let children = processes(|parent, _| parent == us);
    assert!(children.is_empty(), "after {awaits} awaits: {children:?}");
    // What the child had started is killed too, but only its new parent can wait for its end.
    let patience = Instant::now() + Duration::from_secs(10);
    while !processes(|_, command| command.contains(MARK)).is_empty() {
        assert!(Instant::now() < patience, "after {awaits} awaits");
        std::thread::yield_now();
    }
}

#[test]
fn a_driver_dropped_at_any_await_leaves_no_process() {
    let mut current = tokio::runtime::Builder::new_current_thread();
    let mut multi = tokio::runtime::Builder::new_multi_thread();
    for builder in [&mut current, multi.worker_threads(2)] {
        let runtime = builder.enable_all().build().unwrap();
        let mut awaits = 0;
        while !runtime.block_on(give_up_after(awaits, session())) {
            assert_nothing_left(awaits);
            awaits += 1;
        }
        assert_nothing_left(awaits);
        assert!(awaits >= 2, "{awaits}");
    }
}
