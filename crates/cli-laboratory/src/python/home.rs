// SPDX-License-Identifier: Apache-2.0
//! Where the Python half of the program lies, and which Python it runs in.
//! Promise: found when the command runs, by where the executable lies; no path of the build is compiled in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The Python half.
#[derive(Debug, PartialEq, Eq)]
pub struct Home {
    /// What the command shares with Python: a clone of the repository that the executable lies in, or the folder
    /// `share/penstock` that a package installs next to the executable's folder.
    shared: Option<PathBuf>,
    interpreter: PathBuf,
}

impl Home {
    /// The Python that belongs to this executable.
    pub fn find() -> Home {
        let executable = std::env::current_exe().unwrap_or_default();
        Home::of(&executable, std::env::var_os("PENSTOCK_PYTHON"))
    }

    /// `given`: the Python that the user has named. Without one it is that of the checkout's environment, or the one that
    /// was installed next to the executable, as pip installs both, or the system's.
    fn of(executable: &Path, given: Option<OsString>) -> Home {
        let has_package = |folder: &&Path| folder.join("python/penstock/__init__.py").is_file();
        let checkout = executable.ancestors().skip(1).find(has_package).map(Path::to_path_buf);
        let of_checkout = checkout.as_ref().map(|folder| folder.join(".venv/bin/python"));
        let beside = executable.parent().map(|folder| folder.join("python3"));
        let found = of_checkout.or(beside).filter(|python| python.exists());
        let interpreter = given.map(PathBuf::from).or(found).unwrap_or_else(|| "python3".into());
        let installed = || executable.ancestors().nth(2).map(|prefix| prefix.join("share/penstock"));
        let shared = checkout.or_else(|| installed().filter(|folder| folder.is_dir()));
        Home { shared, interpreter }
    }

    pub fn interpreter(&self) -> &Path {
        &self.interpreter
    }

    /// A file or folder of the repository, if the package has it, too.
    pub fn shared(&self, name: &str) -> Option<PathBuf> {
        self.shared.as_ref().map(|folder| folder.join(name)).filter(|path| path.exists())
    }

    /// `PYTHONPATH`: these folders of the repository first, then what the user has.
    pub fn python_path(&self, folders: &[&str]) -> OsString {
        let given = std::env::var_os("PYTHONPATH").unwrap_or_default();
        let given_folders = std::env::split_paths(&given).filter(|folder| !folder.as_os_str().is_empty());
        let found = folders.iter().filter_map(|folder| self.shared(folder));
        let folders: Vec<PathBuf> = found.chain(given_folders).collect();
        std::env::join_paths(&folders).unwrap_or(given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_is_found_around_the_executable_and_an_installed_python_next_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let file = |name: &str| {
            std::fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            std::fs::write(at(name), "").unwrap();
        };
        file("clone/python/penstock/__init__.py");
        let home = Home::of(&at("clone/target/release/penstock"), None);
        assert_eq!(home, Home { shared: Some(at("clone")), interpreter: "python3".into() });
        file("clone/.venv/bin/python");
        let home = Home::of(&at("clone/target/release/penstock"), None);
        assert_eq!(home.interpreter(), at("clone/.venv/bin/python"));
        assert!(home.shared("python").is_some() && home.shared("figures").is_none());
        assert!(home.python_path(&["python"]).to_str().unwrap().starts_with(at("clone/python").to_str().unwrap()));

        let alone = Home { shared: None, interpreter: "python3".into() };
        assert_eq!(Home::of(&at("venv/bin/penstock"), None), alone);
        file("venv/bin/python3");
        assert_eq!(Home::of(&at("venv/bin/penstock"), None).interpreter(), at("venv/bin/python3"));
        assert_eq!(Home::of(&at("venv/bin/penstock"), Some("/other".into())).interpreter(), Path::new("/other"));
        file("venv/share/penstock/figures/__main__.py");
        let home = Home::of(&at("venv/bin/penstock"), None);
        assert_eq!(home.shared("figures"), Some(at("venv/share/penstock/figures")));
        assert_eq!(
            std::env::split_paths(&home.python_path(&["python", "."])).next(),
            Some(at("venv/share/penstock/."))
        );
    }
}
