import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Packed, pack, ROOT, run, succeeds, TEST_PACKAGES } from './packed.ts';

// The package as its users have it: packed, installed into an empty folder, and used from there.

const LONG = process.env.THROUGHLINE_LONG === '1';

let packed: Packed;
/** The entries of the package, by the name to import. */
let entries: string[];
beforeAll(async () => {
  packed = await pack();
  const { exports } = JSON.parse(readFileSync(join(packed.folder, 'package.json'), 'utf8'));
  const named = Object.keys(exports).filter((name) => exports[name].types !== undefined);
  entries = named.map((name) => name.replace(/^\./, 'throughline'));
  cpSync(join(packed.folder, 'examples'), join(packed.user, 'examples'), { recursive: true });
  // A program in TypeScript also installs the types of Node.
  mkdirSync(join(packed.user, 'node_modules/@types'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(packed.user, 'node_modules/@types/node'));
}, 600_000);
afterAll(() => rmSync(packed.scratch, { recursive: true, force: true, maxRetries: 5 }));

const environment = (home: string) => ({
  THROUGHLINE_HOME: join(packed.scratch, home),
  THROUGHLINE_CONFIG: undefined,
  THROUGHLINE_SERVER: undefined,
});
const program = () => join(packed.user, 'node_modules/.bin/throughline');
const command = (home: string, ...args: string[]) =>
  succeeds(process.execPath, [program(), ...args], { cwd: packed.user, env: environment(home) });

/** `throughline serve` of the package. */
async function serve(home: string) {
  const child = spawn(process.execPath, [program(), 'serve', '--port', '0', '--json'], {
    env: { ...process.env, ...environment(home) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const url = await new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text) => resolve(/"url":"([^"]+)"/.exec(text)?.[1] ?? text));
  });
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}

/** Writes a file of the user's program. */
function write(name: string, text: string): string {
  const file = join(packed.user, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe('the tarball', () => {
  test('passes publint', async (context) => {
    const { publint } = await testPackage('publint', context);
    const bytes = readFileSync(packed.tarball);
    const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
    expect((await publint({ pack: { tarball }, strict: true })).messages).toEqual([]);
  });

  test('has types that agree with its modules', async (context) => {
    const { checkPackage, createPackageFromTarballData } = await testPackage('@arethetypeswrong/core', context);
    const { problems } = await checkPackage(createPackageFromTarballData(new Uint8Array(readFileSync(packed.tarball))));
    // The package has ES modules. Supported versions of Node also load them by `require`. Those without `exports` are not supported.
    const others = problems.filter(
      ({ resolutionKind }: Problem) => !['node10', 'node16-cjs'].includes(resolutionKind ?? ''),
    );
    expect(others).toEqual([]);
  });

  test('is small: neither sources, nor tests, nor packages', async () => {
    const listed = await succeeds('tar', ['-tzf', packed.tarball]);
    expect(listed).toContain('package/dist/index.js');
    expect(listed.match(/package\/(src|test|bench|scripts|node_modules)\/.*/g)).toBeNull();
    expect(readFileSync(packed.tarball).length).toBeLessThan(2_500_000);
  });
});

interface Problem {
  readonly kind: string;
  readonly resolutionKind?: string;
}

const PROGRAM = `
import { open } from 'throughline';
await using tl = await open({ home: process.argv[2], settings: { agents: { scripted: { adapter: 'scripted' } } } });
const { reply } = await tl.conversation('notes', { agent: 'scripted' }).ask('The codeword is amber.');
console.log(reply);
`;
const PAGE = `
import { connect, ThroughlineError } from 'throughline/client';
export { ThroughlineError };
export async function ask(url: string, token: string, prompt: string): Promise<string> {
  const tl = await connect({ url, token });
  const { reply } = await tl.conversation('notes', { agent: 'scripted' }).ask(prompt);
  await tl.close();
  return reply;
}
`;

describe('a program in TypeScript', () => {
  const HONO = 'examples/login.ts';
  const COMMON = { strict: true, noEmit: true, skipLibCheck: false, target: 'es2022' };
  const NODE = { ...COMMON, module: 'nodenext', lib: ['esnext'], types: ['node'], allowImportingTsExtensions: true };
  const BROWSER = { ...COMMON, module: 'esnext', moduleResolution: 'bundler', lib: ['es2022', 'dom'], types: [] };

  // The older compiler takes four times as long.
  const older: [version: string, folder: string][] = [['5.9', join(TEST_PACKAGES, 'typescript')]];
  test.each<[version: string, folder: string]>([...(LONG ? older : []), ['7', join(ROOT, 'node_modules/typescript')]])(
    'is checked by TypeScript %s, on Node with all entries and examples, and in a browser; a misspelt option is found',
    async (version, folder) => {
      expect(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).version).toMatch(
        new RegExp(`^${version}\\.`),
      );
      write('program.ts', PROGRAM);
      write('wrong.ts', PROGRAM.replace('home:', 'hoem:'));
      write(
        'all.ts',
        entries.map((name, i) => `import * as entry${i} from '${name}';\nexport { entry${i} };\n`).join(''),
      );
      write('tsconfig.json', JSON.stringify({ compilerOptions: NODE, include: ['*.ts', 'examples'], exclude: [HONO] }));
      // The types of Hono need those of a browser. Our types do not.
      const app = { ...NODE, lib: ['esnext', 'dom'] };
      write('app/tsconfig.json', JSON.stringify({ compilerOptions: app, include: [join('..', HONO)] }));
      write('page/page.ts', PAGE);
      write('page/tsconfig.json', JSON.stringify({ compilerOptions: BROWSER, include: ['*.ts'] }));
      // Three run at once. As in scripts/test.js, more threads would only take longer.
      const threads = version === '7' ? ['--singleThreaded'] : [];
      const check = (project: string) =>
        run(process.execPath, [join(folder, 'bin/tsc'), '-p', join(packed.user, project), ...threads]);
      const [own, ...others] = await Promise.all(['.', 'page', 'app'].map(check));
      const faults = own?.stdout.trim().split('\n');
      expect(faults).toEqual([expect.stringMatching(/wrong\.ts\(3,31\): .*'hoem' does not exist/)]);
      for (const { code, stdout } of others) expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
    },
  );
});

describe('from the installed package', () => {
  test('the library runs a turn, also by require', async () => {
    const file = write('program.ts', PROGRAM);
    const home = join(packed.scratch, 'library');
    expect(await succeeds(process.execPath, [file, home])).toBe('Noted: The codeword is amber.\n');
    const required = `const { ThroughlineError } = require('throughline');
      console.log(ThroughlineError === require('throughline/client').ThroughlineError)`;
    expect(await run(process.execPath, ['-e', required], { cwd: packed.user })).toMatchObject({
      stdout: 'true\n',
      stderr: '',
    });
  });

  test('the commands work, also those that use threads', async () => {
    expect(await command('command', 'send', 'notes', 'The codeword is amber.', '--agent', 'scripted')).toContain(
      'Noted',
    );
    expect(await command('command', 'list')).toContain('notes');
    expect(await command('command', 'search', 'amber')).toContain('amber');
    expect(await command('command', 'backup', join(packed.scratch, 'copy.db'))).toContain('1 turn');
    expect(await command('command', '--version')).toContain(
      JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version,
    );
    expect(JSON.parse(await command('command', 'show', 'notes', '--json')).turns).toHaveLength(1);
    const env = { ...environment('command'), THROUGHLINE_STORE: 'postgres://ann:secret@localhost/x' };
    const { stderr } = await run(process.execPath, [program(), 'list'], { cwd: packed.user, env });
    expect(stderr).toMatch(/"pg", which is not installed[\s\S]*npm install pg/);
  });

  test('a cache of compiled functions is not used if it is damaged, or if others can write it', async () => {
    const { cache, files } = await cached('list');
    expect(files.length).toBeGreaterThan(1);
    for (const file of files) {
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.fill(7, bytes.length / 2, bytes.length / 2 + 64));
    }
    const env = { ...environment('cached'), NODE_COMPILE_CACHE: cache };
    expect(await run(process.execPath, [program(), 'list'], { env })).toMatchObject({ code: 0 });
    // Other users could have written there, so the cache is neither used nor changed.
    const [first = ''] = files;
    chmodSync(dirname(first), 0o777);
    writeFileSync(first, 'damaged');
    expect(await run(process.execPath, [program(), 'list'], { env })).toMatchObject({ code: 0 });
    expect(readFileSync(first, 'utf8')).toBe('damaged');
  });

  test('the stand-in model answers', async () => {
    const asks = `
      import { startModel } from 'throughline/testing';
      const model = await startModel();
      const { status } = await fetch(model.url + '/v1/models');
      console.log(typeof status);
      await model.close();`;
    const file = write('model.ts', asks);
    expect(await succeeds(process.execPath, [file])).toBe('number\n');
  });

  test('the client can be bundled for a browser, without modules of Node, and reaches a server', async () => {
    write('page/page.ts', PAGE);
    const root = join(packed.user, 'page');
    const lib = { entry: 'page.ts', formats: ['es' as const], fileName: 'page' };
    await build({ root, configFile: false, logLevel: 'error', build: { lib, outDir: 'out' } });
    const bundle = join(root, 'out/page.js');
    expect(readFileSync(bundle, 'utf8')).not.toMatch(/^import\b|["'`]node:|\brequire\(/m);
    const { ask, ThroughlineError } = await import(pathToFileURL(bundle).href);
    await expect(ask('http://127.0.0.1:1', 'none', 'hello')).rejects.toThrow(ThroughlineError);
    await using served = await serve('served');
    const token = readFileSync(join(packed.scratch, 'served/server/token'), 'utf8').trim();
    expect(await ask(served.url, token, 'The codeword is amber.')).toBe('Noted: The codeword is amber.');
  });

  test('the server has its page, without the packages that the page is built from', async () => {
    await using served = await serve('page');
    const page = await fetch(served.url);
    expect(page.headers.get('content-security-policy')).toContain("script-src 'self'");
    const [script = ''] = /\/assets\/[^"]+\.js/.exec(await page.text()) ?? [];
    const { status, headers } = await fetch(served.url + script, { headers: { 'accept-encoding': 'br' } });
    expect([status, headers.get('content-encoding')]).toEqual([200, 'br']);
    for (const name of ['react', 'vite', 'tailwindcss']) {
      expect(existsSync(join(packed.user, 'node_modules', name))).toBe(false);
    }
    expect(readFileSync(join(packed.folder, 'dist/page/LICENSES.md'), 'utf8')).toContain('## react-dom');
  });

  // The longer examples run in every run with the sources. Here only their imports differ.
  test(`${LONG ? 'all' : 'the short'} examples pass their tests`, async () => {
    const tests = ['test/e2e/examples.test.ts', ...(LONG ? ['test/e2e/examples-programs.test.ts'] : [])];
    const vitest = [join(ROOT, 'node_modules/vitest/vitest.mjs'), 'run', '--project', 'together', ...tests];
    const env = { THROUGHLINE_EXAMPLES: `${join(packed.user, 'examples')}/`, NO_COLOR: '1' };
    await succeeds(process.execPath, vitest, { cwd: ROOT, env });
  });
});

describe.each(['20', '22'])('on Node %s', (version) => {
  const node = join(TEST_PACKAGES, `node-${version}`, 'bin/node');
  const sentence = new RegExp(
    `Throughline needs Node 24\\.15 or newer, and this is Node ${version}\\.\\d+\\.\\d+\\. Install a newer Node`,
  );

  test('the command and the library say which Node they need, and the client works', async (context) => {
    if (!existsSync(node)) context.skip(`needs Node ${version}, which test/package installs on Linux with x64`);
    const ended = await run(node, [program(), 'list'], { env: environment('old') });
    expect(ended).toMatchObject({ code: 3, stdout: '' });
    expect(ended.stderr.trim().split('\n')).toEqual([expect.stringMatching(sentence)]);
    for (const name of entries) {
      const tries = `import(${JSON.stringify(name)}).then((all) => console.log(Object.keys(all).join()), (e) => console.log(e.message))`;
      const { stdout, stderr } = await run(node, ['-e', tries], { cwd: packed.user });
      expect({ name, stderr }).toEqual({ name, stderr: '' });
      if (name === 'throughline/client') expect(stdout).toContain('connect');
      else expect(stdout).toMatch(sentence);
    }
  });

  test('the command continues with the Node that is installed beside it', async (context) => {
    if (!existsSync(node)) context.skip(`needs Node ${version}, which test/package installs on Linux with x64`);
    const beside = join(packed.user, 'node_modules/node');
    symlinkSync(join(ROOT, 'node_modules/node'), beside);
    try {
      const args = [program(), 'send', version, 'The codeword is amber.', '--agent', 'scripted'];
      const ended = await run(node, args, { env: environment('old') });
      expect(ended).toMatchObject({ code: 0, stdout: 'Noted: The codeword is amber.\n' });
    } finally {
      rmSync(beside);
    }
  });
});

/** A package of test/package. Skips the test where it could not be installed. */
async function testPackage(name: string, context: { skip(why: string): never }) {
  if (!existsSync(join(TEST_PACKAGES, name))) context.skip(`needs ${name}, which test/package installs`);
  return import(pathToFileURL(createRequire(join(TEST_PACKAGES, 'x.js')).resolve(name)).href);
}

/** Runs a command so that it writes its cache. Returns the files of the cache. */
async function cached(name: string): Promise<{ cache: string; files: string[] }> {
  const cache = join(packed.scratch, 'cache');
  mkdirSync(cache);
  const env = { ...environment('cached'), NODE_COMPILE_CACHE: cache };
  await succeeds(process.execPath, [program(), name], { env });
  const listed = await succeeds('find', [cache, '-name', `*.cjs.${name}`]);
  return { cache, files: listed.trim().split('\n') };
}
