// What `throughline agents` and `throughline doctor` report about the login, with real agents and without any model.
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliHome, parseLines } from '../e2e/cli/process.ts';
import { CLAUDE_ACP, quickClaudeAcp, smallAgent, whyNotInstalled } from './support/acp-agents.ts';
import { claudeOrSkip, findClaude, NOT_INSTALLED, packageFolder } from './support/claude.ts';

let home: CliHome;
beforeEach(() => {
  home = new CliHome();
});
afterEach(() => home.remove());

/** Nothing listens at this address, so every request of an agent fails. */
const NO_SERVER = 'http://127.0.0.1:9';

function configure(agents: object): void {
  writeFileSync(home.config, JSON.stringify({ agents }));
}

function agentWith(behaviour: object, options: object = {}): object {
  return smallAgent({ url: NO_SERVER }, home.path, ['complete', JSON.stringify(behaviour)], { ...options });
}

/** The environment of a user who has not logged in. */
function environment(more: object = {}): object {
  const folder = join(home.path, 'user');
  mkdirSync(folder, { recursive: true });
  return { HOME: folder, HTTPS_PROXY: NO_SERVER, ANTHROPIC_BASE_URL: NO_SERVER, ...more };
}

function makeFolder(name: string): string {
  const folder = join(home.path, name);
  mkdirSync(folder);
  return folder;
}

/** For each agent by name: whether it is logged in, or the problem. */
async function logins(): Promise<Record<string, unknown>> {
  const agents = await home.lines('agents');
  return Object.fromEntries(agents.map(({ name, login, problem }) => [name, problem ?? login?.loggedIn ?? login]));
}

test('an ACP agent is logged in if it opens a session, and not if it refuses one', async () => {
  const silent = join(home.path, 'silent');
  writeFileSync(silent, '#!/bin/sh\nsleep 60\n');
  chmodSync(silent, 0o755);
  configure({
    yes: agentWith({ loggedIn: true }),
    no: agentWith({ loggedIn: false }),
    withoutLogin: agentWith({}),
    opencode: agentWith({ loggedIn: true }, { agent: 'opencode' }),
    silent: { adapter: 'acp', command: [silent], options: { openMs: 500 } },
    absent: { adapter: 'acp', command: [join(home.path, 'absent')] },
    scripted: { adapter: 'scripted' },
  });
  expect(await logins()).toEqual({
    yes: true,
    no: false,
    withoutLogin: { loggedIn: null, hint: 'the agent does not report it' },
    opencode: { loggedIn: null, hint: 'the agent does not report it' },
    silent: expect.stringMatching(
      /^silent did not answer as an ACP agent does: .* did not answer within 500 ms .*by hand/,
    ),
    absent: expect.stringMatching(/^absent: The program .* was not found.*Check its "command"/),
    scripted: null,
  });
  const text = await home.ok('agents');
  expect(text).toMatch(/^yes \(acp\): version complete 1\.0\.0.*; load\n {2}\S.*\n {2}logged in\n/m);
  expect(text).toMatch(/\n {2}not logged in: see its own documentation\n/);
});

test('the doctor reports the login as well, and an agent that is not installed is no error', async () => {
  configure({ yes: agentWith({ loggedIn: true }), absent: { adapter: 'acp', command: [join(home.path, 'absent')] } });
  const { code, stdout } = await home.run('doctor', '--json');
  expect(code).toBe(0);
  expect(parseLines(stdout)).toMatchObject([
    { check: 'agents', name: 'yes', traits: { load: true }, login: { loggedIn: true, hint: null } },
    { check: 'agents', name: 'absent', traits: null, problem: expect.stringContaining('was not found') },
  ]);
});

test('an agent is probed in an empty folder of the data home, because it would use settings in a shared one', async () => {
  const program = join(home.path, 'program');
  writeFileSync(program, '#!/bin/sh\npwd -P > "$SEEN"; ls -A >> "$SEEN"; exit 1\n');
  chmodSync(program, 0o755);
  const seen = join(home.path, 'seen');
  configure({ agent: { adapter: 'acp', command: [program], env: { SEEN: seen } } });
  await home.ok('agents');
  const [folder = '', ...files] = readFileSync(seen, 'utf8').trim().split('\n');
  expect(folder).toMatch(new RegExp(`^${join(home.path, 'home')}/`));
  expect(files).toEqual([]);
  expect(existsSync(folder)).toBe(false);
});

test('without settings, agents on PATH are found by name, and each gets only its own API key', async () => {
  const bin = join(home.path, 'bin');
  mkdirSync(bin);
  const agent = smallAgent({ url: NO_SERVER }, home.path, ['complete', '{"loggedIn":true}']).command?.map(
    (word) => `'${word}'`,
  );
  for (const name of ['gemini', 'codex-acp']) {
    writeFileSync(join(bin, name), `#!/bin/sh\nenv > '${home.path}/${name}.env'\nexec ${agent?.join(' ')}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const secrets = { OPENAI_API_KEY: 'o', GEMINI_API_KEY: 'g', AWS_SECRET_ACCESS_KEY: 'a', THROUGHLINE_KEY: 't' };
  const env = { ...secrets, PATH: `${bin}:/usr/bin:/bin`, THROUGHLINE_CONFIG: '' };
  const { code, stdout, stderr } = await home.start(['agents', '--json'], { env }).ended;
  expect(code, stderr).toBe(0);
  const found = parseLines(stdout).filter(({ adapter }) => adapter === 'acp');
  expect(found).toMatchObject([
    { name: 'codex', where: `${bin}/codex-acp (PATH)`, traits: { load: true }, login: { loggedIn: true } },
    { name: 'gemini', where: `${bin}/gemini (PATH)`, traits: { load: true }, login: { loggedIn: true } },
  ]);
  const secretsOf = (name: string) => {
    const lines = readFileSync(join(home.path, `${name}.env`), 'utf8').split('\n');
    return Object.keys(secrets).filter((secret) => lines.some((line) => line.startsWith(`${secret}=`)));
  };
  expect([secretsOf('gemini'), secretsOf('codex-acp')]).toEqual([['GEMINI_API_KEY'], ['OPENAI_API_KEY']]);
});

test('claude-agent-acp and codex-acp report whether they are logged in, with a key and without one', async (context) => {
  const why =
    whyNotInstalled('@agentclientprotocol/claude-agent-acp') ?? whyNotInstalled('@agentclientprotocol/codex-acp');
  if (why !== null) context.skip(why);
  const acp = (agent: string, env: object) => ({ adapter: 'acp', package: packageFolder, env, options: { agent } });
  configure({
    out: acp('claude-code', environment()),
    in: acp('claude-code', environment({ ANTHROPIC_API_KEY: 'sk-fake' })),
    codex: acp('codex', environment()),
    codexWithKey: acp('codex', { ...environment({ OPENAI_API_KEY: 'sk-fake' }), HOME: makeFolder('codex-home') }),
  });
  // Each Codex has its own home, because two of them cannot initialise one at the same time. A key alone is not enough for Codex: the login
  // method must be chosen, and Codex stores the choice in its home.
  expect(await logins()).toEqual({ out: false, in: true, codex: false, codexWithKey: false });
  const env = { ...environment({ OPENAI_API_KEY: 'sk-fake' }), HOME: makeFolder('codex-home-with-key') };
  configure({ codexWithKey: { ...acp('codex', env), options: { agent: 'codex', auth: 'api-key' } } });
  expect(await logins()).toEqual({ codexWithKey: true });
});

test('the script that replaces the login check of Claude in other tests gives the same answer as Claude', (context) => {
  const claude = findClaude(CLAUDE_ACP);
  if (claude === null) return context.skip(NOT_INSTALLED);
  const { env } = quickClaudeAcp({ url: NO_SERVER }, home.path);
  const statusOf = (program: string) =>
    JSON.parse(execFileSync(program, ['auth', 'status', '--json'], { env }).toString());
  expect(statusOf(claude.program)).toMatchObject(statusOf(env.CLAUDE_CODE_EXECUTABLE ?? ''));
});

test('Claude reports whether it is logged in, and the hint names its program', async (context) => {
  const { program } = claudeOrSkip(context);
  const claude = (adapter: string, env: object) => ({ adapter, package: packageFolder, env });
  configure({
    out: claude('claude-cli', environment()),
    in: claude('claude-sdk', environment({ ANTHROPIC_API_KEY: 'sk-fake' })),
  });
  expect(await logins()).toEqual({ out: false, in: true });
  // The program is not on PATH, so the hint has the whole path.
  expect(await home.ok('agents')).toContain(`not logged in: run "${program} auth login", or set`);
});

test('Claude is not probed in a shared temporary folder, where others may have put settings', async (context) => {
  claudeOrSkip(context);
  const shared = join(home.path, 'shared');
  mkdirSync(join(shared, '.claude'), { recursive: true });
  writeFileSync(join(shared, '.claude', 'settings.json'), '{"apiKeyHelper":"echo sk-planted"}');
  configure({ out: { adapter: 'claude-sdk', package: packageFolder, env: environment() } });
  const { code, stdout } = await home.start(['agents', '--json'], { env: { TMPDIR: shared } }).ended;
  expect(code).toBe(0);
  expect(parseLines(stdout)).toMatchObject([{ name: 'out', login: { loggedIn: false } }]);
});
