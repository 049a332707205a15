# SPDX-License-Identifier: Apache-2.0
"""A GPU and a NIC that writes to it, for the Soft-RoCE machine: stand-ins for NVIDIA's driver and `ibv_reg_dmabuf_mr`.

Promise: compiled here with the C++ compiler, again when a source changes; in the machine they are in /gpu and /nic,
where only programs with the matching LD_LIBRARY_PATH find them.
"""

import hashlib
import re
import shutil
from pathlib import Path

from kernel import ImageError, run

HERE = Path(__file__).parent
KERNELS = HERE.parents[1] / "crates/gpu/kernels"
SOURCES = (KERNELS / "driver_standin.cpp", KERNELS / "kernels.cu", KERNELS / "on_cpu.h", HERE / "dma_buf_nic.c")
REAL = "libibverbs-real.so.1"


def libraries(folder: Path, verbs: Path) -> dict[str, Path | str | bytes]:
    """What the machine gets of it: path there to file here. `verbs` is the real libibverbs."""
    if shutil.which("c++") is None or shutil.which("cc") is None:
        raise ImageError("the stand-in for a GPU needs a C++ compiler, as the gateware does: apt-get install g++")
    made = folder / "gpu"
    key = hashlib.blake2b(b"".join(path.read_bytes() for path in (*SOURCES, Path(__file__), verbs))).hexdigest()
    if not (made / "key").exists() or (made / "key").read_text() != key:
        made.mkdir(parents=True, exist_ok=True)
        compile_all(made, verbs)
        (made / "key").write_text(key)
    return {
        "/gpu/libcuda.so.1": made / "libcuda.so.1",
        "/nic/libibverbs.so.1": made / "libibverbs.so.1",
        f"/nic/{REAL}": verbs,
    }


def compile_all(made: Path, verbs: Path) -> None:
    """The driver, and a libibverbs that needs the real one under another name and has all its versions."""
    static = ("-static-libstdc++", "-static-libgcc")
    shared = ("-O1", "-shared", "-fPIC")
    driver, include = KERNELS / "driver_standin.cpp", KERNELS / "on_cpu.h"
    cuda = ("-include", str(include), str(driver), "-o", str(made / "libcuda.so.1"))
    run(["c++", "-std=c++17", *shared, *static, *cuda])
    versions = re.findall(r"Name: (IBVERBS_\S+)", run(["readelf", "-W", "-V", str(verbs)]))
    first, *rest = dict.fromkeys(versions)
    script = made / "versions"
    script.write_text(
        f"{first} {{ global: ibv_reg_dmabuf_mr; ibv_dereg_mr; local: *; }};\n"
        + "".join(f"{name} {{ }};\n" for name in rest)
    )
    (made / "empty.c").write_text("")
    run(["cc", *shared, f"-Wl,-soname,{REAL}", str(made / "empty.c"), "-o", str(made / "real.so")])
    named = ("-Wl,-soname,libibverbs.so.1", f"-Wl,--version-script={script}", "-o", str(made / "libibverbs.so.1"))
    run(["cc", *shared, str(HERE / "dma_buf_nic.c"), "-Wl,--no-as-needed", str(made / "real.so"), *named])
