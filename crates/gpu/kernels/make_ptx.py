# SPDX-License-Identifier: Apache-2.0
"""Makes kernels.ptx from kernels.cu, or checks that it matches that file.

    python -m venv /tmp/cuda && /tmp/cuda/bin/pip install nvidia-cuda-nvrtc-cu11==11.8.89
    /tmp/cuda/bin/python crates/gpu/kernels/make_ptx.py

NVRTC compiles without a GPU, a driver or a toolkit. Release 11.8 makes PTX that drivers from 520 on take, for every GPU
from compute capability 7.0 (Volta) on: the driver compiles it for the GPU that it finds.
"""

import argparse
import ctypes
import hashlib
import importlib.util
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE, PTX = HERE / "kernels.cu", HERE / "kernels.ptx"
RELEASE = "11.8"
OPTIONS = (b"--gpu-architecture=compute_70", b"--std=c++14")


def source_digest() -> str:
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def header() -> str:
    """What stands in front of the compiler's output: its licence, where it is from."""
    options = b" ".join(OPTIONS).decode()
    return (
        "// SPDX-License-Identifier: Apache-2.0\n"
        f"// Made by make_ptx.py with NVRTC {RELEASE}, {options}\n"
        f"// of kernels.cu, SHA-256 {source_digest()}\n"
    )


def nvrtc() -> ctypes.CDLL | None:
    """NVRTC of the release that made kernels.ptx, from its wheel; none if it is not installed here."""
    package = importlib.util.find_spec("nvidia")
    for folder in package.submodule_search_locations if package else ():
        for library in Path(folder).glob("cuda_nvrtc/lib/libnvrtc.so.*"):
            loaded = ctypes.CDLL(str(library))
            major, minor = ctypes.c_int(), ctypes.c_int()
            loaded.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
            if f"{major.value}.{minor.value}" == RELEASE:
                return loaded
    return None


def compiled(library: ctypes.CDLL) -> str:
    """PTX of kernels.cu. Raises RuntimeError with the compiler's messages."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), SOURCE.read_bytes(), b"kernels.cu", 0, None, None)
    failed = library.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
    kind = "ProgramLog" if failed else "PTX"
    getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{kind}")(program, text)
    if failed:
        raise RuntimeError(text.value.decode())
    return text.value.decode()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    library = nvrtc()
    if library is None:
        print(f"error: NVRTC {RELEASE} is not installed for this Python: see --help", file=sys.stderr)
        return 2
    PTX.write_text(header() + compiled(library))
    print(f"written: {PTX}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
