use super::*;

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lumen-verdict-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        Self(path)
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_verdict_is_found_until_command_or_program_is_another() {
    let folder = Folder::new();
    let cache = folder.0.join("new/cache");
    let verdicts = Verdicts::below(&cache);
    let program = folder.program("server", "one");
    let command = || CommandSpec::new(&program).args(["a", "bc"]);
    assert_eq!(verdicts.find(&command()).unwrap(), None);
    assert!(!cache.exists(), "looking makes nothing");

    let path = verdicts.record(&command(), "it ended (exit code 1)").unwrap();
    assert_eq!(verdicts.find(&command()).unwrap().as_deref(), Some(path.as_path()));
    let other = Verdicts::below(&folder.0);
    assert_eq!(other.find(&command()).unwrap(), None);
    for other in [
        CommandSpec::new(&program).args(["ab", "c"]),
        CommandSpec::new(&program).args(["a", "bc", ""]),
        CommandSpec::new("/bin/sh").args(["a", "bc"]),
        CommandSpec::new("/no/such/program"),
    ] {
        assert_eq!(verdicts.find(&other).unwrap(), None, "{other:?}");
    }
    folder.program("server", "other");
    assert_eq!(verdicts.find(&command()).unwrap(), None);
    assert_eq!(verdicts.find(&CommandSpec::new(&program)).unwrap(), None);
}

#[test]
fn a_program_is_looked_for_where_its_start_will_look() {
    let folder = Folder::new();
    let verdicts = Verdicts::below(&folder.0);
    folder.program("lumen-test-server", "");
    let command = |path: &Path| CommandSpec::new("lumen-test-server").env("PATH", path);
    verdicts.record(&command(&folder.0), "").unwrap();
    assert!(verdicts.find(&command(&folder.0)).unwrap().is_some());
    assert!(verdicts.find(&command(Path::new("/nowhere"))).unwrap().is_none());
    assert!(verdicts.find(&CommandSpec::new("lumen-test-server").env_clear()).unwrap().is_none());
    let relative = CommandSpec::new("./lumen-test-server");
    assert!(verdicts.record(&relative, "").is_err());
    verdicts.record(&relative.cwd(&folder.0), "").unwrap();
}

#[test]
fn the_file_is_this_users_and_says_what_it_is() {
    let folder = Folder::new();
    let verdicts = Verdicts::below(&folder.0);
    let program = folder.program("server", "");
    let command = CommandSpec::new(&program).arg("--token=hunter2");
    let path = verdicts.record(&command, "it answered nothing").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    for wanted in ["do not probe", "why: it answered nothing\n", "when: 20", "server\n", "--negotiate probe"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
    // Only the file: nothing of the writing is left.
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    verdicts.forget(&command).unwrap();
    assert_eq!(verdicts.find(&command).unwrap(), None);
}

#[test]
fn what_others_can_write_is_not_believed() {
    let folder = Folder::new();
    let verdicts = Verdicts::below(&folder.0);
    let program = folder.program("server", "");
    let command = CommandSpec::new(&program);
    let path = verdicts.record(&command, "").unwrap();
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    for (changed, kept) in [(path.as_path(), 0o600), (path.parent().unwrap(), 0o700)] {
        set(changed, kept | 0o020);
        assert_eq!(verdicts.find(&command).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        set(changed, kept);
        assert!(verdicts.find(&command).unwrap().is_some());
    }
    let elsewhere = folder.0.join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(verdicts.find(&command).is_err());
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(verdicts.find(&command).is_err());
    fs::remove_dir(&path).unwrap();
    fs::write(&path, "something else\n").unwrap();
    assert_eq!(verdicts.find(&command).unwrap(), None);
}

#[test]
fn a_cache_that_is_none_is_an_error_and_no_more() {
    let folder = Folder::new();
    let program = folder.program("server", "");
    let command = CommandSpec::new(&program);
    let file = Verdicts::below(&program);
    assert!(file.find(&command).is_err() && file.record(&command, "").is_err());
    let nowhere = Verdicts::below(Path::new("/proc/no/cache"));
    assert_eq!(nowhere.find(&command).unwrap(), None);
    assert!(nowhere.record(&command, "").is_err());
    assert!(nowhere.forget(&command).is_err());
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = Folder::new();
    let verdicts = Verdicts::below(&folder.0);
    let program = folder.program("server", "");
    let path = verdicts.record(&CommandSpec::new(&program).arg("old"), "").unwrap();
    let kept = path.parent().unwrap().join("not-ours");
    File::create(&kept).unwrap();
    let old = File::options().write(true).open(&path).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    for index in 0..MAX_VERDICTS {
        File::create(path.with_file_name(format!("{index:032x}"))).unwrap();
    }
    let path = verdicts.record(&CommandSpec::new(&program).arg("new"), "").unwrap();
    assert!(kept.exists() && path.exists());
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), MAX_VERDICTS + 1);
    assert!(verdicts.find(&CommandSpec::new(&program).arg("old")).unwrap().is_none());
    assert!(verdicts.find(&CommandSpec::new(&program).arg("new")).unwrap().is_some());
}

#[test]
fn moments_are_written_as_people_do() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_709_251_200, "2024-03-01T00:00:00Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(Utc::of(time).to_string(), text);
    }
}
