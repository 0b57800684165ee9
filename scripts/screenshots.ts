// `npm run screenshots`: takes pictures of the main views of the page, in three widths and two colour schemes, into screenshots/.
//
//   npm run screenshots                 all views
//   npm run screenshots -- seam tasks   only views whose name contains one of the words
//   npm run screenshots -- --readme     only the two pictures of the README: one view, wide, in both schemes, into docs/
//
// The server is real, with the demo, its own data and scripted agents: no model is called. To add a view, add a line to VIEWS.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { connect, type ThroughlineClient } from '../src/client.ts';
import { launchChromium } from '../test/browser/chromium.ts';
import { ensurePage } from './page.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const OUT = join(root, 'screenshots');
const WIDTHS = { phone: [390, 844], tablet: [820, 1180], wide: [1440, 900] } as const;
const SCHEMES = ['light', 'dark'] as const;

/** The earlier turns of the conversation "release-notes": each a prompt and its answer. */
const RELEASE = [
  [
    'The codeword is amber-heron. What changed since 2.3?',
    '## Since 2.3\n\n- **Search** finds words inside code.\n- Sessions are restored in half the time.\n- `list` shows who answered last.',
  ],
  [
    'Show me how the limit is read.',
    'It is one function:\n\n```ts\nexport function limitOf(settings: Settings): number {\n  const { limit = 200 } = settings;\n  return Math.max(1, limit);\n}\n```\n\nBelow 1 there is nothing to read.',
  ],
  [
    'And who should read the notes?',
    'Two kinds of people:\n\n| who | looks for |\n|---|---|\n| operators | what to do before the update |\n| developers | what their code has to change |',
  ],
].map(([prompt = '', answer = '']) => [
  { role: 'user' as const, content: prompt },
  { role: 'assistant' as const, content: answer },
]);

/** The ids of the prepared conversations and of a task. */
interface Data {
  readonly demo: string;
  readonly release: string;
  readonly task: string;
  readonly deploy: string;
  readonly stranded: string;
  readonly unrestored: string;
  readonly loss: string;
  readonly part: string;
  readonly changed: string;
}

interface View {
  readonly path: (data: Data) => string;
  /** An element that is visible when the view is loaded. */
  readonly shows: (page: Page) => Locator;
  /** What is done in the view before the picture is taken. */
  readonly act?: (page: Page) => Promise<void>;
}

const text = (words: string | RegExp) => (page: Page) => page.getByRole('main').getByText(words).first();
const seam = (page: Page) => page.getByRole('region', { name: `Seam before turn ${RELEASE.length + 2}` });
/** The buttons of a permission are disabled for a moment. */
const untilAnswerable = (page: Page) =>
  page
    .getByRole('button', { name: /^Allow/ })
    .first()
    .click({ trial: true });
/** Opens a tab of the panel. Its content is loaded when it is first shown, so `shows` is waited for. */
const panel = (tab: string, shows: (content: Locator) => Locator) => async (page: Page) => {
  const show = page.getByRole('button', { name: 'Show the panel' });
  if (await show.isVisible()) await show.click();
  else if ((await page.getByRole('tab').count()) === 0) {
    await page.getByRole('button', { name: 'Conversation actions' }).click();
    await page.getByRole('menuitem', { name: 'Show the panel' }).click();
  }
  const isMore = ['Usage', 'Raw'].includes(tab);
  if (isMore) await page.getByRole('button', { name: 'More about the conversation' }).click();
  await page.getByRole(isMore ? 'menuitem' : 'tab', { name: tab }).click();
  await shows(page.getByRole('tabpanel', { name: tab }))
    .first()
    .waitFor();
};
const palette = async (page: Page) => {
  await page.keyboard.press('Control+k');
  await page.getByRole('dialog', { name: 'Palette' }).getByRole('option').first().waitFor();
};
const typed = (keys: string, words: string, shows: (page: Page) => Locator) => async (page: Page) => {
  await page.keyboard.press(keys);
  await page.keyboard.type(words);
  await shows(page).first().waitFor();
};

const dialog = (keys: string) => async (page: Page) => {
  await page.keyboard.press(keys);
  await page.getByRole('dialog').waitFor();
};
const press = (name: string | RegExp, shows: (page: Page) => Locator) => async (page: Page) => {
  await page.getByRole('button', { name }).first().click();
  await shows(page).first().waitFor();
};
/** What a session was told, with the end of the turn before it. */
const told = async (page: Page) => {
  await page.getByText('is the one on record').waitFor();
  await seam(page).evaluate((bar) => {
    bar.scrollIntoView({ block: 'start' });
    bar.closest('[role=log]')?.scrollBy(0, -110);
  });
};
/** On a phone, the list and its search are a view of their own. */
const searched = async (page: Page) => {
  const list = page.getByRole('link', { name: 'All', exact: true });
  if (await list.isVisible()) await list.click();
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('textbox', { name: 'Search all conversations' }).fill('notes');
  await page.getByRole('list', { name: 'Search results' }).getByRole('link').first().waitFor();
};
/** The three steps, and what comes after them. */
const firstSteps = async (page: Page) => {
  for (const name of [/^Tell it/, 'Kill the live session', /^Ask which/]) {
    await page.getByRole('region', { name: 'First steps' }).getByRole('button', { name }).click();
  }
  await page.getByRole('heading', { name: 'Now with your own agent' }).waitFor();
};

const VIEWS: Readonly<Record<string, View>> = {
  'for-you': { path: () => '/', shows: text('Needs you') },
  all: { path: () => '/all', shows: (page) => page.getByRole('link', { name: /Release notes/ }) },
  conversation: { path: ({ release }) => `/c/${release}`, shows: seam },
  seam: { path: ({ release }) => `/c/${release}/seam/${RELEASE.length + 2}`, shows: seam },
  sessions: {
    path: ({ release }) => `/c/${release}`,
    shows: seam,
    act: panel('Sessions', (content) => content.getByRole('button')),
  },
  loss: { path: ({ loss }) => `/c/${loss}/seam/401`, shows: text('did not fit') },
  part: { path: ({ part }) => `/c/${part}`, shows: text('oldest did not fit') },
  usage: {
    path: ({ release }) => `/c/${release}`,
    shows: seam,
    act: panel('Usage', (content) => content.getByRole('row')),
  },
  tasks: { path: () => '/tasks', shows: text('notes') },
  task: { path: ({ task }) => `/tasks/${task}`, shows: text('Write the release notes') },
  health: { path: () => '/health', shows: text('scripted') },
  'first-run': { path: ({ demo }) => `/c/${demo}`, shows: (page) => page.getByRole('region', { name: 'First steps' }) },
  palette: { path: () => '/', shows: text('Needs you'), act: palette },
  new: { path: () => '/new', shows: text('New conversation') },
  compare: { path: ({ release }) => `/c/${release}/compare`, shows: text('Tokens in / out') },
  permission: { path: ({ deploy }) => `/c/${deploy}`, shows: text(/npm run migrate/), act: untilAnswerable },
  stranded: {
    path: ({ stranded }) => `/c/${stranded}`,
    shows: (page) => page.getByRole('region', { name: 'Stranded' }),
  },
  keys: { path: () => '/', shows: text('Needs you'), act: dialog('?') },
  options: {
    path: () => '/new',
    shows: text('New conversation'),
    act: press('More', (page) => page.getByRole('region', { name: 'More' })),
  },
  told: {
    path: ({ release }) => `/c/${release}/seam/${RELEASE.length + 2}`,
    shows: seam,
    act: told,
  },
  raw: {
    path: ({ release }) => `/c/${release}`,
    shows: seam,
    act: panel('Raw', (content) => content.getByText('turn.ended')),
  },
  'own-agent': { path: ({ demo }) => `/c/${demo}`, shows: text('Which codewords'), act: firstSteps },
  find: {
    path: ({ release }) => `/c/${release}`,
    shows: seam,
    act: typed('Control+f', 'notes', (page) => page.getByRole('status').filter({ hasText: /turns?$/ })),
  },
  search: {
    path: () => '/',
    shows: text('Needs you'),
    act: searched,
  },
  'failed-restore': {
    path: ({ unrestored }) => `/c/${unrestored}/seam/2`,
    shows: (page) => page.getByRole('region', { name: 'Seam before turn 2' }),
  },
  changes: {
    path: ({ changed }) => `/c/${changed}`,
    shows: text('Rounded once'),
    act: panel('Changes', (content) => content.getByText('invoice.ts')),
  },
  'add-task': {
    path: () => '/tasks',
    shows: text('notes'),
    act: press('Add a task', (page) => page.getByRole('dialog')),
  },
};

/** What the README shows. */
const README_VIEW = 'told';
const isForReadme = process.argv.includes('--readme');
const words = isForReadme ? [README_VIEW] : process.argv.slice(2);
const chosen = Object.entries(VIEWS).filter(
  ([name]) => words.length === 0 || words.some((word) => name.includes(word)),
);
const sizes = Object.entries(WIDTHS).filter(([size]) => !isForReadme || size === 'wide');

await ensurePage();
const browser = await launchChromium();
if (typeof browser === 'string') {
  console.error(`screenshots: ${browser}`);
  process.exit(1);
}
const folder = mkdtempSync(join(tmpdir(), 'throughline-screenshots-'));
const server = startServer();
try {
  const [line] = (await once(createInterface({ input: server.stdout as NodeJS.ReadableStream }), 'line')) as [string];
  const { url, link } = JSON.parse(line) as { url: string; link: string };
  const data = await prepare(url);
  const signedIn = await browser.newContext();
  await signedIn.request.get(link, { maxRedirects: 0 });
  const state = await signedIn.storageState();
  mkdirSync(OUT, { recursive: true });
  for (const [size, [width, height]] of sizes) {
    for (const colorScheme of SCHEMES) {
      const how = { viewport: { width, height }, colorScheme, storageState: state, reducedMotion: 'reduce' as const };
      await takeAll(browser, url, data, { ...how, hasTouch: size === 'phone', isMobile: size === 'phone' }, size);
    }
  }
} finally {
  await browser.close();
  const ended = once(server, 'exit');
  server.kill();
  await ended;
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

type Context = NonNullable<Parameters<Browser['newContext']>[0]>;

/** Takes one picture of each view. If a view fails, it is named, and the others are taken. */
async function takeAll(from: Browser, url: string, data: Data, how: Context, size: string): Promise<void> {
  for (const [name, { path, shows, act }] of chosen) {
    const file = `${name}-${size}-${how.colorScheme}.png`;
    // A context for each view, because the page remembers what was open.
    const context = await from.newContext(how);
    const page = await context.newPage();
    try {
      await page.goto(url + path(data));
      await shows(page).waitFor();
      await act?.(page);
      await page.evaluate('new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)))');
      await page.screenshot({ path: join(OUT, file) });
      console.log(`screenshots/${file}`);
      if (isForReadme) copyFileSync(join(OUT, file), join(root, `docs/page-${how.colorScheme}.png`));
    } catch (error) {
      console.error(`screenshots: ${file} could not be taken: ${(error as Error).message.split('\n')[0]}`);
      process.exitCode = 1;
    }
    await context.close();
  }
}

/** The server does not use the settings and logins of this machine. */
function startServer(): ChildProcess {
  const agents = {
    scripted: { adapter: 'scripted' },
    forgetful: { adapter: 'scripted', options: { memory: 'process' } },
  };
  writeFileSync(join(folder, 'settings.json'), JSON.stringify({ defaultAgent: 'scripted', agents }));
  return throughline('home', ['serve', '--demo', '--json', '--port', '0', '--log-level', 'warn']);
}

function throughline(home: string, args: readonly string[]): ChildProcess {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    THROUGHLINE_HOME: join(folder, home),
    THROUGHLINE_CONFIG: join(folder, 'settings.json'),
  };
  const command = [join(root, 'bin/throughline.js'), ...args];
  return spawn(process.execPath, command, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Creates a conversation from another data home, where no process runs any more. */
async function leaveStranded(): Promise<void> {
  const store = `sqlite:${join(folder, 'home/throughline.db')}`;
  const child = throughline('laptop', [
    'send',
    'budget',
    '--store',
    store,
    'Budget of the autumn\n/say It is balanced.',
  ]);
  child.stdout?.resume();
  await once(child, 'exit');
}

/** Conversations in every state that a view shows. */
async function prepare(url: string): Promise<Data> {
  const token = readFileSync(join(folder, 'home/server/token'), 'utf8').trim();
  await using tl = await connect({ url, token });
  const release = await tl.import(RELEASE.flat(), { key: 'release-notes', agent: 'forgetful' });
  await release.rename('Release notes for 2.4');
  await release.ask(
    '/think The list is in CHANGELOG.md.\n/tool read CHANGELOG.md\n/tool write notes.md\n/say The notes are written.',
  );
  await release.kill();
  await release.ask('Which codewords have you seen?');
  await tl.conversation('flaky', { title: 'Find the flaky test' }).send('/say Looking at the last 50 runs.\n/hang')
    .accepted;
  await tl
    .conversation('deploy', { title: 'Deploy to staging' })
    .send('Deploy the branch.\n/ask npm run migrate -- --env staging').accepted;
  const invoice = tl.conversation('invoice', { title: 'Rounding in invoices', cwd: changedRepository() });
  await invoice.ask('/say Rounded once, at the end.');
  const unrestored = tl.conversation('audit', { title: 'Audit of the keys', agent: 'forgetful' });
  await unrestored.ask('/say Three keys have not been used this year.');
  await unrestored.kill();
  await unrestored.ask('Which ones?', { restore: { rung: 'resume' } }).catch(() => {});
  const loss = await lose(tl, 'arm64', 400, { budgetTokens: 569 });
  const part = await lose(tl, 'notes-of-a-year', 30, { budgetTokens: null, lastTurns: 26 });
  const task = await addTasks(tl.tasks);
  await leaveStranded();
  const stranded = await tl.conversation('budget').get();
  const demo = await tl.conversation('demo').get();
  const deploy = await tl.conversation('deploy').get();
  const ids = {
    loss,
    part,
    demo: demo.id,
    deploy: deploy.id,
    stranded: stranded.id,
    changed: (await invoice.get()).id,
  };
  return { ...ids, unrestored: (await unrestored.get()).id, release: (await release.get()).id, task };
}

/** A long conversation that was brought in, of which a new session was told only the end. */
async function lose(
  tl: Awaited<ReturnType<typeof connect>>,
  key: string,
  turns: number,
  restore: { budgetTokens: number | null; lastTurns?: number },
) {
  const said = Array.from({ length: turns }, (_, index) => [
    { role: 'user' as const, content: `Does workflow ${index + 1} build on both architectures?` },
    { role: 'assistant' as const, content: `Workflow ${index + 1} builds on both, after its cache was split.` },
  ]);
  const chat = await tl.import(said.flat(), { key, agent: 'forgetful' });
  await chat.rename(key === 'arm64' ? 'Move CI to arm64 runners' : 'Notes of a year');
  await chat.ask('/say Two are left.', { restore });
  return (await chat.get()).id;
}

/** Adds tasks in several states. Returns the id of one whose gate failed twice and then passed. */
async function addTasks(tasks: ThroughlineClient['tasks']): Promise<string> {
  const gate = (command: string) => ({ command: `cd ${folder} && ${command}` });
  const twice =
    'echo x >> tried; n=$(wc -l < tried); test $n -gt 2 && echo "41 passed" || (echo "$((3 - n)) failed, $((38 + n)) passed"; false)';
  const common = { milestone: '2.4', cwd: folder };
  const [done] = await tasks.run({ ...common, goal: 'Write the release notes', gate: gate(twice), name: 'notes' });
  await tasks.run({
    ...{ goal: 'Remove the old settings', gate: gate('echo "src/settings.ts: 4 uses are left"; false'), cwd: folder },
    ...{ name: 'old-settings', maxIterations: 2, budget: { tokens: 2_000 } },
  });
  await tasks.add({ goal: 'Migrate the settings\n/hang', cwd: folder, name: 'migrate', budget: { tokens: 50_000 } });
  await tasks.add({ ...common, goal: 'Tag the release\n/hang', name: 'tag' });
  return done?.id ?? '';
}

/** A repository in which a file was changed and another one added. */
function changedRepository(): string {
  const path = join(folder, 'shop');
  mkdirSync(path);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.org', ...args], {
      cwd: path,
      stdio: 'ignore',
    });
  const before =
    'export function total(lines: Line[]): number {\n  return lines.reduce((sum, line) => sum + round(line.amount), 0);\n}\n';
  writeFileSync(join(path, 'invoice.ts'), before);
  git('init', '-q');
  git('add', '.');
  git('commit', '-qm', 'Begin');
  writeFileSync(
    join(path, 'invoice.ts'),
    before.replace(
      'return lines.reduce((sum, line) => sum + round(line.amount), 0)',
      'return round(lines.reduce((sum, line) => sum + line.amount, 0))',
    ),
  );
  writeFileSync(
    join(path, 'invoice.test.ts'),
    "test('cents add up', () => {\n  expect(total([cents(1), cents(2)])).toBe(0.03);\n});\n",
  );
  return path;
}
