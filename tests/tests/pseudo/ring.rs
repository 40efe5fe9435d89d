//! A runtime as small as one can be, of the kind that has a completion queue: one thread, tasks that are not `Send`, and
//! operations that own their descriptor and their buffer until they are complete. Dropping a future does not take its
//! operation back; only [`cancel`] does. What a real one has the kernel do is done here with `poll(2)`.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// What an operation does with its descriptor.
enum What {
    Read(Vec<u8>),
    /// All from there on.
    Write(BytesMut, usize),
    /// Only waits until it could be read.
    Watch,
}

/// An operation that was submitted. `fd` is none for a timer.
struct Submitted {
    fd: Option<Rc<OwnedFd>>,
    what: What,
    until: Option<Instant>,
    slot: Rc<RefCell<Slot>>,
}

/// Where the result of an operation goes.
#[derive(Default)]
struct Slot {
    result: Option<(io::Result<usize>, What)>,
    waker: Option<Waker>,
}

struct Task(u64, Arc<Mutex<VecDeque<u64>>>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push_back(self.0);
    }
}

#[derive(Default)]
struct Runtime {
    submitted: Vec<Submitted>,
    spawned: Vec<Pin<Box<dyn Future<Output = ()>>>>,
}

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::default();
}

/// Runs a task beside the one that is running.
pub fn spawn(task: impl Future<Output = ()> + 'static) {
    RUNTIME.with_borrow_mut(|runtime| runtime.spawned.push(Box::pin(task)));
}

/// Runs until `main` is done. Tasks that are left over are dropped, and so are operations.
pub fn block_on<T: 'static>(main: impl Future<Output = T> + 'static) -> T {
    let result = Rc::new(RefCell::new(None));
    let out = Rc::clone(&result);
    spawn(async move { *out.borrow_mut() = Some(main.await) });
    let woken = Arc::new(Mutex::new(VecDeque::new()));
    let mut tasks: Vec<Option<Pin<Box<dyn Future<Output = ()>>>>> = Vec::new();
    loop {
        for task in RUNTIME.with_borrow_mut(|runtime| std::mem::take(&mut runtime.spawned)) {
            woken.lock().unwrap().push_back(tasks.len() as u64);
            tasks.push(Some(task));
        }
        if let Some(result) = result.borrow_mut().take() {
            tasks.clear();
            RUNTIME.take();
            return result;
        }
        let next = woken.lock().unwrap().pop_front();
        let Some(id) = next else {
            turn();
            continue;
        };
        let waker = Waker::from(Arc::new(Task(id, Arc::clone(&woken))));
        let place = &mut tasks[id as usize];
        if let Some(task) = place
            && task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            *place = None;
        }
    }
}

/// Reads into a buffer that it owns meanwhile.
pub async fn read(fd: Rc<OwnedFd>, buffer: Vec<u8>) -> (io::Result<usize>, Vec<u8>) {
    match completion(&submit(Some(fd), What::Read(buffer), None)).await {
        (result, What::Read(buffer)) => (result, buffer),
        _ => unreachable!("it was a read"),
    }
}

/// Writes a prefix of what is in a buffer from an offset on, and owns it meanwhile.
pub async fn write(fd: Rc<OwnedFd>, buffer: BytesMut, from: usize) -> (io::Result<usize>, BytesMut) {
    match completion(&submit(Some(fd), What::Write(buffer, from), None)).await {
        (result, What::Write(buffer, _)) => (result, buffer),
        _ => unreachable!("it was a write"),
    }
}

/// Waits until a descriptor can be read.
pub async fn watch(fd: Rc<OwnedFd>) -> io::Result<()> {
    completion(&submit(Some(fd), What::Watch, None)).await.0.map(drop)
}

/// Waits until a point in time. The one operation that its future takes back when it is dropped.
pub async fn sleep_until(until: Instant) {
    struct Timer(Rc<RefCell<Slot>>);
    impl Drop for Timer {
        fn drop(&mut self) {
            let is_other = |submitted: &Submitted| !Rc::ptr_eq(&submitted.slot, &self.0);
            RUNTIME.with_borrow_mut(|runtime| runtime.submitted.retain(is_other));
        }
    }
    let timer = Timer(submit(None, What::Watch, Some(until)));
    let _ = completion(&timer.0).await;
}

/// Takes back what is submitted for a descriptor: it completes with `ECANCELED`.
pub fn cancel(fd: &Rc<OwnedFd>) {
    let taken: Vec<Submitted> = RUNTIME.with_borrow_mut(|runtime| {
        let is_of = |submitted: &mut Submitted| submitted.fd.as_ref().is_some_and(|of| Rc::ptr_eq(of, fd));
        runtime.submitted.extract_if(.., is_of).collect()
    });
    taken.into_iter().for_each(|submitted| submitted.complete(Err(Errno::CANCELED)));
}

fn submit(fd: Option<Rc<OwnedFd>>, what: What, until: Option<Instant>) -> Rc<RefCell<Slot>> {
    let slot = Rc::new(RefCell::new(Slot::default()));
    let submitted = Submitted { fd, what, until, slot: Rc::clone(&slot) };
    RUNTIME.with_borrow_mut(|runtime| runtime.submitted.push(submitted));
    slot
}

async fn completion(slot: &RefCell<Slot>) -> (io::Result<usize>, What) {
    poll_fn(|cx| {
        let mut slot = slot.borrow_mut();
        slot.waker = Some(cx.waker().clone());
        slot.result.take().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Does what the kernel would: waits until an operation can be done, and does all that can.
fn turn() {
    let mut submitted = RUNTIME.with_borrow_mut(|runtime| std::mem::take(&mut runtime.submitted));
    assert!(!submitted.is_empty(), "every task waits and nothing is submitted");
    let first = submitted.iter().filter_map(|submitted| submitted.until).min();
    let left = first.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let fds: Vec<(Rc<OwnedFd>, PollFlags)> = submitted.iter().filter_map(Submitted::interest).collect();
    let mut polled: Vec<_> = fds.iter().map(|(fd, flags)| PollFd::new(&**fd, *flags)).collect();
    poll(&mut polled, left.as_ref()).expect("it can be waited");
    let ready: Vec<i32> =
        polled.iter().filter(|fd| !fd.revents().is_empty()).map(|fd| fd.as_fd().as_raw_fd()).collect();
    for mut done in submitted.extract_if(.., |submitted| submitted.is_ready(&ready)) {
        match done.act() {
            // Another operation was quicker.
            Err(Errno::AGAIN) => RUNTIME.with_borrow_mut(|runtime| runtime.submitted.push(done)),
            result => done.complete(result),
        }
    }
    RUNTIME.with_borrow_mut(|runtime| runtime.submitted.extend(submitted));
}

impl Submitted {
    fn interest(&self) -> Option<(Rc<OwnedFd>, PollFlags)> {
        let flags = if let What::Write(..) = self.what { PollFlags::OUT } else { PollFlags::IN };
        Some((Rc::clone(self.fd.as_ref()?), flags))
    }

    fn is_ready(&self, ready: &[i32]) -> bool {
        self.fd.as_ref().is_some_and(|fd| ready.contains(&fd.as_raw_fd()))
            || self.until.is_some_and(|until| until <= Instant::now())
    }

    fn act(&mut self) -> Result<usize, Errno> {
        match (&self.fd, &mut self.what) {
            (Some(fd), What::Read(buffer)) => rustix::io::read(&**fd, buffer.as_mut_slice()),
            (Some(fd), What::Write(buffer, from)) => rustix::io::write(&**fd, &buffer[*from..]),
            _ => Ok(0),
        }
    }

    fn complete(self, result: Result<usize, Errno>) {
        let mut slot = self.slot.borrow_mut();
        slot.result = Some((result.map_err(io::Error::from), self.what));
        let waker = slot.waker.take();
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
