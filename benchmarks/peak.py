"""What the machine can do at most: independent fused multiply-adds on its widest vectors, on one core."""

from __future__ import annotations

import ctypes
import time

CHAINS = 16  # enough for any latency times throughput of present cores
ROUNDS = 100_000


def fma_peak(lanes: int, repeats: int = 30) -> float:
    """Floating-point operations a nanosecond (GFLOP/s), double precision."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=2, reloc="pic"
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_text(lanes)), machine)
    engine.finalize_object()
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(engine.get_function_address("peak"))
    room = ctypes.create_string_buffer(8 * lanes * CHAINS + 64)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run(ROUNDS, ctypes.addressof(room))
        best = min(best, time.perf_counter() - start)
    return 2 * lanes * CHAINS * ROUNDS / best * 1e-9


def _text(lanes: int) -> str:
    v, chains = f"<{lanes} x double>", range(CHAINS)
    one = f"<{', '.join(['double 0.5'] * lanes)}>"
    phi = "\n".join(f"  %x{k} = phi {v} [zeroinitializer, %0], [%y{k}, %loop]" for k in chains)
    fma = "\n".join(f"  %y{k} = call {v} @llvm.fma.v{lanes}f64({v} %x{k}, {v} {one}, {v} {one})" for k in chains)
    store = "\n".join(
        f"  %p{k} = getelementptr {v}, ptr %room, i64 {k}\n  store {v} %y{k}, ptr %p{k}, align 8" for k in chains
    )
    return f"""declare {v} @llvm.fma.v{lanes}f64({v}, {v}, {v})
define void @peak(i64 %n, ptr %room) {{
  br label %loop
loop:
  %k = phi i64 [0, %0], [%k2, %loop]
{phi}
{fma}
  %k2 = add i64 %k, 1
  %more = icmp slt i64 %k2, %n
  br i1 %more, label %loop, label %done
done:
{store}
  ret void
}}
"""
