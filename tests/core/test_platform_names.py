"""Static check: only neural/core/platform_support.py uses names that a system may lack."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import neural

PACKAGE = Path(neural.__file__).parent
SUPPORT = PACKAGE / "core" / "platform_support.py"
PLATFORM_MODULES = re.compile(
    r"fcntl|grp|msvcrt|nt|posix|pty|pwd|resource|spwd|syslog|termios|tty|winreg|winsound|_winapi|"
    r"_posixsubprocess"
)
PLATFORM_NAMES = {
    "os": re.compile(
        r"chown|chroot|ctermid|fchmod|fchown|fdatasync|fork\w*|fsync|getloadavg|getpgid|getpgrp|"
        r"getpriority|getppid|getresuid|getsid|get[e]?[ug]id|getgroups|getxattr|kill|killpg|lchown|"
        r"lockf|major|minor|mkfifo|mknod|name|nice|openpty|plock|posix_\w+|pread\w*|pwrite\w*|"
        r"register_at_fork|rename|sched_\w+|sendfile|set\w*[ug]id|setpgid|setpgrp|setpriority|"
        r"setsid|setxattr|spawn\w*|startfile|statvfs|symlink|sync|sysconf\w*|tcgetpgrp|uname|wait|"
        r"wait3|wait4|waitid|waitpid|WNOHANG|EX_\w+|O_(?!RDONLY|WRONLY|RDWR|APPEND|CREAT|EXCL|TRUNC)"
        r"\w+"
    ),
    "signal": re.compile(
        r"SIG(?!INT$|TERM$|_DFL$|_IGN$)\w+|CTRL_\w+|alarm|setitimer|pause|sigwait\w*|pthread_\w+|"
        r"set_wakeup_fd|siginterrupt"
    ),
    "sys": re.compile(r"platform|getwindowsversion"),
    "time": re.compile(r"tzset|clock_\w+|pthread_\w+"),
    "socket": re.compile(r"AF_UNIX|socketpair|SO_REUSE\w+|SO_EXCLUSIVEADDRUSE|sethostname"),
    "select": re.compile(r".*"),  # works on sockets only on Windows
    "ctypes": re.compile(r"WinDLL|WinError|windll|oledll|FormatError"),
}
"""Names of modules that are not on every system, or mean something else there."""
PLATFORM_OPTIONS = {"start_new_session", "preexec_fn", "creationflags", "startupinfo", "pass_fds"}
"""Options of `subprocess.Popen` that not every system has."""
TEXT_MODE = re.compile(r"[rwxa]t?\+?t?")


def find_platform_names(source: str) -> list[str]:
    """The platform-only names in a module, and its text files without encoding; with lines."""
    findings = []
    for node in ast.walk(ast.parse(source)):
        text = _describe_finding(node)
        if text:
            findings.append(f"line {getattr(node, 'lineno', 0)}: {text}")
    return findings


def _describe_finding(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=aliases):
            modules = [alias.name for alias in aliases if PLATFORM_MODULES.fullmatch(alias.name)]
            return f"import {modules[0]}" if modules else None
        case ast.ImportFrom(module=str(module), names=aliases):
            if PLATFORM_MODULES.fullmatch(module):
                return f"from {module} import …"
            names = [alias.name for alias in aliases if _is_platform_name(module, alias.name)]
            return f"{module}.{names[0]}" if names else None
        case ast.Attribute(value=ast.Name(id=module), attr=name) if _is_platform_name(module, name):
            return f"{module}.{name}"
        case ast.Constant(value=str(value)) if value.startswith("/proc"):
            return value
        case ast.Call():
            return _describe_call(node)
    return None


def _is_platform_name(module: str, name: str) -> bool:
    return module in PLATFORM_NAMES and bool(PLATFORM_NAMES[module].fullmatch(name))


def _describe_call(call: ast.Call) -> str | None:
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if options := PLATFORM_OPTIONS & set(keywords):
        return f"{min(options)}="
    if _is_text_without_encoding(call, keywords):
        return f"text without encoding: {ast.unparse(call)}"
    match call:
        case ast.Call(func=ast.Name(id="hasattr" | "getattr"), args=[ast.Name(id=module), *_]) if (
            module in PLATFORM_NAMES
        ):
            return ast.unparse(call)
        # `Path.replace` has one argument, `str.replace` two
        case ast.Call(func=ast.Attribute(attr="rename" | "replace"), args=[_], keywords=[]):
            return f"{ast.unparse(call)}: use replace_file or rename_folder"
        case ast.Call(
            func=ast.Attribute(attr="strftime"), args=[ast.Constant(value=str(form)), *_]
        ):
            if re.search(r"%[-#_]|%[eklPsT]", form):
                return f"strftime({form!r})"
        case ast.Call(func=ast.Attribute(attr="get_context"), args=[ast.Constant(value=method)]):
            return f"start method {method}" if method != "spawn" else None
    return None


def _is_text_without_encoding(call: ast.Call, keywords: dict[str | None, ast.expr]) -> bool:
    if "encoding" in keywords:
        return False
    modes = [
        node.value
        for node in [*call.args[:2], *([keywords["mode"]] if "mode" in keywords else [])]
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    match call.func:
        case ast.Name(id="open"):
            return not any("b" in mode for mode in modes[-1:])
        case ast.Attribute(attr="open", value=receiver):
            if any(TEXT_MODE.fullmatch(mode) for mode in modes):
                return True
            has_path = isinstance(receiver, ast.BinOp) or "path" in ast.unparse(receiver).lower()
            return has_path and not call.args and "mode" not in keywords
        case ast.Attribute(attr="fdopen" | "NamedTemporaryFile" | "TemporaryFile"):
            return any(TEXT_MODE.fullmatch(mode) for mode in modes)
        case ast.Attribute(attr="read_text"):
            return not call.args
        case ast.Attribute(attr="write_text"):
            return len(call.args) < 2
        case _:
            is_text = keywords.get("text", keywords.get("universal_newlines"))
            return isinstance(is_text, ast.Constant) and is_text.value is True


def test_only_the_platform_module_uses_names_that_a_system_may_lack():
    findings = {
        path.relative_to(PACKAGE).as_posix(): names
        for path in PACKAGE.rglob("*.py")
        if path != SUPPORT and (names := find_platform_names(path.read_text(encoding="utf-8")))
    }
    assert findings == {}


PLANTED_SOURCES = {
    "import": "import fcntl",
    "import_in_function": "def lock():\n    import msvcrt",
    "import_from": "from resource import getrusage",
    "import_name": "from os import fork",
    "fork": "import os\nos.fork()",
    "nice": "os.nice(10)",
    "user": "os.geteuid()",
    "group": "os.killpg(1, 2)",
    "cores": "os.sched_getaffinity(0)",
    "flag": "os.open(p, os.O_RDONLY | os.O_NOFOLLOW)",
    "asks": 'hasattr(os, "fork")',
    "asks_default": 'getattr(os, "O_NONBLOCK", 0)',
    "asks_system": 'sys.platform == "win32"',
    "signal_0": "os.kill(pid, 0)",
    "sigkill": "signal.SIGKILL",
    "sighup": "signal.signal(signal.SIGHUP, stop)",
    "alarm": "signal.alarm(3)",
    "session": "subprocess.Popen(command, start_new_session=True)",
    "rename": "path.rename(target)",
    "replace": "Path(a).replace(b)",
    "fsync": "os.fsync(3)",
    "proc": 'Path("/proc/self/stat")',
    "time_format": 'time.strftime("%-d")',
    "start_method": 'multiprocessing.get_context("fork")',
    "port": "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)",
    "open": "open(name)",
    "open_mode": 'open(name, "w")',
    "path_open": 'path.open("a")',
    "path_open_default": "(folder / name).open()",
    "read_text": "path.read_text()",
    "write_text": "path.write_text(text)",
    "child_output": "subprocess.run(command, text=True)",
    "temporary": 'tempfile.NamedTemporaryFile("w+")',
}


@pytest.mark.parametrize("source", PLANTED_SOURCES.values(), ids=PLANTED_SOURCES)
def test_planted_platform_names_are_found(source):
    assert len(find_platform_names(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        'text.replace("a", "b")',
        "replace(point, x=1)",
        "os.replace(a, b)",
        "signal.signal(signal.SIGINT, signal.SIG_DFL)",
        'open(name, "rb")',
        'path.open("wb")',
        'path.read_text(encoding="utf-8")',
        'path.write_text(text, "utf-8")',
        "Run.open(path)",
        "subprocess.run(command, capture_output=True)",
        'time.strftime("%Y-%m-%d")',
    ],
)
def test_what_every_system_has_is_not_reported(source):
    assert find_platform_names(source) == []
