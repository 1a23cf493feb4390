//! Where `find` looks, and for what.

use super::paths::is_vital;
use super::simple::Simple;

/// The places where `find` starts.
pub(super) fn places(command: &Simple) -> impl Iterator<Item = &str> {
    let words = command.arguments().iter().map(String::as_str);
    words.skip_while(|word| ["-H", "-L", "-P"].contains(word)).take_while(|word| !word.starts_with('-'))
}

/// Whether `find` looks for something in particular.
pub(super) fn is_narrowed(command: &Simple) -> bool {
    let arguments = command.arguments();
    let is_narrow = |(at, word): (usize, &String)| {
        let value = arguments.get(at + 1).map_or("", String::as_str);
        match word.as_str() {
            "-name" | "-iname" | "-path" => !matches!(value, "*" | "*.*" | "?*" | "/*"),
            "-mtime" | "-newer" | "-size" | "-mmin" | "-atime" | "-ctime" | "-regex" | "-empty" | "-user"
            | "-inum" => true,
            _ => false,
        }
    };
    arguments.iter().enumerate().any(is_narrow)
}

/// The place whose whole content `find` or `ls` lists, if nobody can do without it.
pub(super) fn listed(command: &Simple) -> Option<&str> {
    let is_vital = |path: &&str| is_vital(path, command.directory.as_deref());
    match command.name() {
        "find" | "gfind" if !is_narrowed(command) => places(command).find(is_vital),
        "ls" if command.has('d', "directory") => command.operands().find(is_vital),
        _ => None,
    }
}
