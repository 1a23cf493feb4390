//! Names of functions that matter, in all languages together.

/// Functions that start a program in every language that has them.
pub(super) const STARTS: [&str; 40] = [
    "system",
    "popen",
    "shell_exec",
    "passthru",
    "proc_open",
    "execSync",
    "execFile",
    "execFileSync",
    "spawnSync",
    "spawn",
    "Popen",
    "check_output",
    "check_call",
    "getoutput",
    "getstatusoutput",
    "popen2",
    "popen3",
    "capture2",
    "capture3",
    "capture2e",
    "system2",
    "startfile",
    "posix_spawn",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "execle",
    "execlpe",
    "spawnl",
    "spawnv",
    "spawnlp",
    "spawnvp",
    "pcntl_exec",
    "create_subprocess_shell",
    "create_subprocess_exec",
    "fork_exec",
    "shell",
];
/// Functions that decode.
pub(super) const DECODES: [&str; 23] = [
    "pack",
    "b64decode",
    "base64",
    "decodestring",
    "fromhex",
    "unhexlify",
    "decompress",
    "decode",
    "unpack",
    "unpack1",
    "atob",
    "Buffer",
    "decode_base64",
    "base64_decode",
    "gzinflate",
    "gzuncompress",
    "str_rot13",
    "hex2bin",
    "chr",
    "fromCharCode",
    "codecs",
    "marshal",
    "rot13",
];
/// Functions that get something from the network.
pub(super) const FETCHES: [&str; 14] = [
    "urlopen",
    "urllib",
    "requests",
    "httpx",
    "fetch",
    "http",
    "https",
    "URI",
    "Net",
    "LWP",
    "curl_exec",
    "aiohttp",
    "axios",
    "XMLHttpRequest",
];

/// Other calls that matter.
const OTHERS: [&str; 48] = [
    "run",
    "call",
    "exec",
    "execute",
    "cmd",
    "Command",
    "eval",
    "Function",
    "assert",
    "instance_eval",
    "class_eval",
    "loadstring",
    "rmtree",
    "rm_rf",
    "rm_r",
    "remove_tree",
    "remove_entry_secure",
    "rimraf",
    "removeSync",
    "remove_dir_all",
    "rmSync",
    "rm",
    "rmdirSync",
    "rmdir",
    "unlink",
    "unlinkSync",
    "remove",
    "delete",
    "open",
    "fopen",
    "writeFileSync",
    "writeFile",
    "appendFileSync",
    "appendFile",
    "file_put_contents",
    "readFileSync",
    "readFile",
    "file_get_contents",
    "write",
    "read",
    "Path",
    "chmod",
    "chmodSync",
    "kill",
    "executescript",
    "executemany",
    "query",
    "raw",
];

/// Functions that send what they are given to another machine.
pub(super) const SENDS: [&str; 12] = [
    "storbinary",
    "storlines",
    "sendmail",
    "send_message",
    "send",
    "sendall",
    "sendfile",
    "put_object",
    "upload_fileobj",
    "upload_from_filename",
    "upload_blob",
    "putfo",
];

/// Whether the calls of a function are looked at.
pub(super) fn is_of_interest(name: &str) -> bool {
    STARTS.contains(&name)
        || OTHERS.contains(&name)
        || SENDS.contains(&name)
        || matches!(
            name,
            "exec_driver_sql"
                | "posix_kill"
                | "ProcessBuilder"
                | "dropDatabase"
                | "post"
                | "put"
                | "urlopen"
                | "upload_file"
                | "request"
                | "fetch"
                | "get"
                | "load"
                | "include"
                | "include_once"
                | "require"
                | "require_once"
        )
}
