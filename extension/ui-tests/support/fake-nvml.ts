// A stand-in for NVML, built for a test run, and the code that gives it to a kernel's status.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, '../../../tests/jupyter/data/fake_nvml.c');

export class FakeNvml {
  private readonly folder = mkdtempSync(join(tmpdir(), 'pygpukit-nvml-'));
  private readonly library = join(this.folder, 'libfake-nvml.so');

  constructor() {
    execFileSync('cc', ['-shared', '-fPIC', '-o', this.library, SOURCE]);
  }

  /** Python that makes this library the one that the kernel reads. */
  get code(): string {
    return `from pygpukit.jupyter import health, status\nstatus.health = health.Health(${JSON.stringify(this.library)}, bytes(range(16)))`;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}
