// A server of JupyterLab or Notebook of its own for a test run: free loopback port, token, temporary folders for everything it writes.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const NOTEBOOKS = process.env['PYGPUKIT_NOTEBOOKS'] ?? join(import.meta.dirname, '../../../notebooks');
const PYTHON = process.env['PYGPUKIT_PYTHON'] ?? 'python';
const START_MS = 120_000;
const STOP_MS = 30_000;
const ATTEMPTS = 5;
/** What a server writes before it ends because somebody took its port since it was seen free: the server itself, too, looks first. */
const PORT_TAKEN = /no available port could be found|port \d+ is not available/;
/** What ipykernel tells of its language, as far as the lab asks. */
const PYTHON_INFO = { name: 'python', mimetype: 'text/x-python', file_extension: '.py', codemirror_mode: { name: 'ipython', version: 3 } };

/** The applications that show a notebook: where, and what they are told beside what every server is. */
const APPS = {
  jupyterlab: {
    path: 'lab/tree',
    options: ['--LabApp.expose_app_in_browser=True', '--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate'],
  },
  notebook: { path: 'notebooks', options: ['--JupyterNotebookApp.expose_app_in_browser=True'] },
} as const;

export type App = keyof typeof APPS;

export class LabServer {
  private constructor(
    private readonly process: ChildProcess,
    private readonly folder: string,
    private readonly base: string,
    private readonly path: string,
    private readonly token: string,
  ) {}

  /** Whether the Python that is tested has a module. */
  static has(module: string): boolean {
    return spawnSync(PYTHON, ['-c', `import ${module}`]).status === 0;
  }

  /**
   * Starts a server on a copy of the notebooks and waits until it answers. prefix: of its addresses, as behind a hub. config: what
   * jupyter_server_config.json says. choosePort: asked again when somebody else took the port.
   */
  static async start(
    theme: 'JupyterLab Light' | 'JupyterLab Dark',
    prefix = '/',
    app: App = 'jupyterlab',
    config: object = {},
    choosePort = freePort,
  ): Promise<LabServer> {
    const folder = mkdtempSync(join(tmpdir(), 'pygpukit-ui-'));
    const inFolder = (name: string): string => join(folder, name);
    cpSync(NOTEBOOKS, inFolder('notebooks'), { recursive: true });
    const settings = inFolder('settings');
    writeSetting(settings, 'apputils-extension/themes', { theme });
    writeSetting(settings, 'apputils-extension/notification', { checkForUpdates: false, fetchNews: 'false' });
    // Every cell is in the page, also those out of sight.
    writeSetting(settings, 'notebook-extension/tracker', { windowingMode: 'none' });
    mkdirSync(inFolder('config'));
    writeFileSync(inFolder('config/jupyter_server_config.json'), JSON.stringify(config));
    const token = crypto.randomUUID();
    const options = [
      '--ServerApp.open_browser=False',
      '--ServerApp.ip=127.0.0.1',
      '--ServerApp.port_retries=0',
      `--ServerApp.base_url=${prefix}`,
      '--ServerApp.allow_root=True',
      `--ServerApp.root_dir=${inFolder('notebooks')}`,
      `--IdentityProvider.token=${token}`,
      ...APPS[app].options,
    ];
    const env = {
      ...process.env,
      JUPYTER_CONFIG_DIR: inFolder('config'),
      JUPYTER_RUNTIME_DIR: inFolder('runtime'),
      JUPYTERLAB_SETTINGS_DIR: inFolder('settings'),
      JUPYTERLAB_WORKSPACES_DIR: inFolder('workspaces'),
      IPYTHONDIR: inFolder('ipython'),
      PYGPUKIT_CACHE_DIR: inFolder('cache'),
    };
    for (let attempt = 1; ; attempt++) {
      const port = await choosePort();
      const child = spawn(PYTHON, ['-m', app, `--ServerApp.port=${port}`, ...options], { env, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
      const closed = once(child, 'close');
      let log = '';
      child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-20_000)));
      const server = new LabServer(child, folder, `http://127.0.0.1:${port}${prefix.replace(/\/$/, '')}`, APPS[app].path, token);
      try {
        await server.ready();
        return server;
      } catch (error) {
        if (child.exitCode !== null) {
          await closed; // then its log is complete
          if (attempt < ATTEMPTS && PORT_TAKEN.test(log)) continue;
        }
        await server.stop();
        throw new Error(`${app} did not start with ${PYTHON}: ${String(error)}\n${log}`);
      }
    }
  }

  /** The lab with this notebook open; with the layout that was left, where it is kept. */
  notebookUrl(name: string, layout: 'fresh' | 'kept' = 'fresh'): string {
    return `${this.base}/${this.path}/${name}?${layout === 'fresh' ? 'reset&' : ''}token=${this.token}`;
  }

  /** Puts a notebook of these code cells where the lab finds it; `saved`: with the language that a kernel told. */
  putNotebook(name: string, sources: readonly string[], saved = false): void {
    const cells = sources.map((source, at) => ({
      id: `cell-${at}`,
      cell_type: 'code',
      source,
      metadata: {},
      outputs: [],
      execution_count: null,
    }));
    const metadata = { kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' }, ...(saved && { language_info: PYTHON_INFO }) };
    this.writeNotebook(name, JSON.stringify({ cells, metadata, nbformat: 4, nbformat_minor: 5 }));
  }

  writeNotebook(name: string, text: string): void {
    writeFileSync(join(this.folder, 'notebooks', name), text);
  }

  /** Marks a notebook as one that was made here: the lab shows all of its outputs. */
  trust(name: string): void {
    execFileSync(PYTHON, ['-m', 'nbformat.sign', join(this.folder, 'notebooks', name)], { stdio: 'pipe' });
  }

  /** The text of a notebook as it was saved last. */
  readNotebook(name: string): string {
    return readFileSync(join(this.folder, 'notebooks', name), 'utf8');
  }

  /** Ends every kernel; a page that is open would start its own anew. */
  async endKernels(): Promise<void> {
    const ask = (path: string, method: string): Promise<Response> =>
      fetch(`${this.base}/api/${path}`, { method, headers: { Authorization: `token ${this.token}` } });
    const kernels = (await (await ask('kernels', 'GET')).json()) as { id: string }[];
    for (const { id } of kernels) await ask(`kernels/${id}`, 'DELETE');
  }

  /** Pages that are loaded from now on leave out these extensions only, as after `jupyter labextension disable`. */
  disable(...names: readonly string[]): void {
    const file = join(this.folder, 'config/labconfig/page_config.json');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, JSON.stringify({ disabledExtensions: Object.fromEntries(names.map((name) => [name, true])) }));
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null) {
      const gone = new Promise((done) => this.process.once('exit', done));
      // A first SIGINT would ask a question; SIGTERM shuts the kernels down too.
      this.process.kill('SIGTERM');
      const late = setTimeout(() => this.process.kill('SIGKILL'), STOP_MS); // the server may hang while it ends
      await gone;
      clearTimeout(late);
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20 });
  }

  private async ready(): Promise<void> {
    const end = Date.now() + START_MS;
    const ended = new AbortController();
    this.process.once('exit', () => ended.abort()); // whoever else has the port may never answer
    for (;;) {
      if (this.process.exitCode !== null) throw new Error(`it ended with code ${this.process.exitCode}`);
      const response = await fetch(`${this.base}/api/status?token=${this.token}`, { signal: ended.signal }).catch(() => null);
      if (response?.ok) return;
      if (Date.now() > end) throw new Error(`no answer in ${START_MS / 1000} s`);
      await new Promise((done) => setTimeout(done, 250));
    }
  }
}

function writeSetting(root: string, plugin: string, value: unknown): void {
  const file = join(root, '@jupyterlab', `${plugin}.jupyterlab-settings`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, JSON.stringify(value));
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      const port = typeof address === 'object' && address ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });
}
