"""``torch-tpu``: the executable cache and the state of the installation, from the shell.

    torch-tpu info                       what the device is and where its plugin comes from
    torch-tpu explain TARGET --topology v5e:2x2    what a TPU would do with a program; none is needed
    torch-tpu cache list|verify|clear    the cache on disk
    torch-tpu cache export FILE.tar      pack it, to ship with an image
    torch-tpu cache import FILE.tar      add another machine's entries; damaged ones are refused
    torch-tpu fusion FILE                a report saved by torch.tpu.explain_fusion().save(FILE), as text
"""
import argparse
import os
import struct
import sys
import tarfile
import time

_MAGIC = b"TTPUEXE\n"
_HEADER = struct.Struct("<8sII3Q2Q")  # src/cache/disk.c: magic, format, reserved, key, meta, exe lengths, checksum
_M = (1 << 64) - 1


def _fold(a: int, b: int) -> int:
    m = a * b
    return (m ^ (m >> 64)) & _M


def _hash64(data: bytes, seed: int) -> int:
    """src/base/hash.c, for checking files without the library."""
    k0, k1, k2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xCA5A826395121157
    n = len(data)
    h, g = seed ^ _fold(n ^ k0, k1), seed ^ k2
    whole = n // 16
    for a, b in struct.iter_unpack("<QQ", data[: whole * 16]):
        h = _fold(a ^ k1 ^ h, b ^ g ^ k2)
        g = (g * k0 + h) & _M
    a, b = struct.unpack("<QQ", data[whole * 16 :].ljust(16, b"\0"))
    h = _fold(a ^ k2 ^ h, b ^ k1 ^ g ^ (n - whole * 16))
    h ^= h >> 32
    h = (h * k1) & _M
    return h ^ (h >> 29)


def _check(data: bytes) -> str:
    """'' for a whole entry, else what is wrong with it."""
    if len(data) < _HEADER.size:
        return "shorter than a header"
    magic, fmt, _, key, meta, exe, lo, hi = _HEADER.unpack_from(data)
    if magic != _MAGIC or fmt != 1:
        return "not an entry of this format"
    body = data[_HEADER.size :]
    if len(body) != key + meta + exe:
        return f"{len(body)} bytes instead of {key + meta + exe}"
    if _hash64(body, 0x243F6A8885A308D3) != lo or _hash64(body, 0x13198A2E03707344) != hi:
        return "checksum does not match"
    return ""


def _title(data: bytes) -> str:
    key = struct.unpack_from("<Q", data, 16)[0]
    text = data[_HEADER.size : _HEADER.size + key]
    for line in text.split(b"\n"):
        if line.startswith(b"op "):
            return line[3:].decode(errors="replace")
    return "program"


def _entries(root):
    for top in sorted(os.listdir(root)) if os.path.isdir(root) else []:
        folder = os.path.join(root, top)
        if len(top) != 2 or not os.path.isdir(folder):
            continue
        for name in sorted(os.listdir(folder)):
            if "." not in name:
                yield os.path.join(folder, name)


def _cache(args) -> int:
    from ._loader import _default_cache_dir

    root = args.dir or _default_cache_dir()
    if not root:
        print("the disk cache is off (TORCH_TPU_CACHE_DIR is empty)")
        return 1
    if args.what == "export":
        with tarfile.open(args.file, "w") as tar:
            n = 0
            for path in _entries(root):
                tar.add(path, os.path.relpath(path, root))
                n += 1
        print(f"{n} entries -> {args.file}")
        return 0
    if args.what == "import":
        n = bad = 0
        with tarfile.open(args.file) as tar:
            for member in tar:
                parts = member.name.split("/")
                source = tar.extractfile(member) if member.isfile() else None
                if source is None or len(parts) != 2 or len(parts[0]) != 2 or not all(p.isalnum() for p in parts):
                    continue
                data = source.read()
                if _check(data):
                    bad += 1
                    continue
                folder = os.path.join(root, parts[0])
                os.makedirs(folder, mode=0o700, exist_ok=True)
                temporary = os.path.join(folder, f"{parts[1]}.{os.getpid()}.0")
                with open(temporary, "wb") as out:
                    out.write(data)
                os.replace(temporary, os.path.join(folder, parts[1]))
                n += 1
        print(f"{n} entries imported into {root}" + (f", {bad} damaged ones refused" if bad else ""))
        return 0
    total = n = bad = 0
    for path in _entries(root):
        if args.what == "clear":
            os.unlink(path)
            n += 1
            continue
        with open(path, "rb") as f:
            data = f.read()
        n += 1
        total += len(data)
        if args.what == "list":
            age = time.strftime("%Y-%m-%d %H:%M", time.localtime(os.stat(path).st_mtime))
            print(f"{len(data) / 1024:9.1f} kB  {age}  {_title(data)}")
        else:
            why = _check(data)
            if why:
                bad += 1
                print(f"{path}: {why}")
    if args.what == "clear":
        print(f"{n} entries removed from {root}")
    else:
        print(f"{n} entries, {total / 1048576:.1f} MiB in {root}" + (f"; {bad} damaged" if args.what == "verify" else ""))
    return 1 if bad else 0


def _info(args) -> int:
    import torch

    print(f"torch {torch.__version__}")
    print(f"device    {torch.tpu.get_device_name()} x {torch.tpu.device_count()}")
    from . import _C

    for what in ("platform", "platform_version", "plugin_path", "api_version", "stablehlo_version"):
        print(f"{what:18} {_C.runtime_info(what)}")
    return 0


def _fusion(args) -> int:
    from . import _explain

    try:
        print(_explain.load(args.file).text(args.top))
    except (OSError, ValueError) as why:
        print(f"torch-tpu fusion: {why}", file=sys.stderr)
        return 1
    return 0


def main(argv=None) -> int:
    p = argparse.ArgumentParser(prog="torch-tpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = p.add_subparsers(dest="verb", required=True)
    verbs.add_parser("info").set_defaults(run=_info)
    cache = verbs.add_parser("cache")
    cache.add_argument("what", choices=["list", "verify", "clear", "export", "import"])
    cache.add_argument("file", nargs="?")
    cache.add_argument("--dir", help="another cache folder")
    cache.set_defaults(run=_cache)
    fusion = verbs.add_parser("fusion")
    fusion.add_argument("file")
    fusion.add_argument("--top", type=int, default=12, help="places and regions to show (default 12)")
    fusion.set_defaults(run=_fusion)
    from .aot import cli as explain

    explain.add_arguments(verbs)
    args = p.parse_args(argv)
    if args.verb == "cache" and args.what in ("export", "import") and not args.file:
        p.error(f"cache {args.what} needs a file")
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
