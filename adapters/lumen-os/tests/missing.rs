//! What cannot be started, and what is said about it.
//!
//! Alone in its process: a program that was just written cannot be run while a process that is just being started
//! holds a copy of the descriptor it was written through.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use lumen_os::{CommandSpec, SpawnError, spawn};
use lumen_proto::OpenErrorKind;

#[test]
fn what_is_missing_is_named() {
    let missing = spawn(&CommandSpec::new("no-such-program-of-lumen")).unwrap_err();
    assert!(matches!(missing, SpawnError::ProgramNotFound { .. }), "{missing}");
    assert_eq!(missing.open_error().kind, OpenErrorKind::NotFound);

    let cwd = spawn(&CommandSpec::new("/bin/sh").cwd("/no/such/dir")).unwrap_err();
    assert!(matches!(cwd, SpawnError::CwdNotFound { .. }), "{cwd}");
    assert!(cwd.to_string().contains("/no/such/dir"), "{cwd}");
    assert_eq!(cwd.open_error().kind, OpenErrorKind::NotFound);

    let dir = std::env::temp_dir().join(format!("lumen-os-{}-script", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let script = dir.join("script");
    fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    let denied = spawn(&CommandSpec::new(&script)).unwrap_err();
    assert_eq!(denied.open_error().kind, OpenErrorKind::PermissionDenied, "{denied}");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for spec in [CommandSpec::new(&script), CommandSpec::new("./script").cwd(&dir)] {
        let interpreter = spawn(&spec).unwrap_err();
        assert!(matches!(interpreter, SpawnError::InterpreterNotFound { .. }), "{interpreter}");
    }
    fs::remove_dir_all(&dir).unwrap();

    let nul = spawn(&CommandSpec::new("/bin/sh").arg("a\0b")).unwrap_err();
    assert!(matches!(nul, SpawnError::Refused { .. }), "{nul}");
}
