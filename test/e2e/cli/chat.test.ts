// "throughline chat" at a real terminal (tmux): what a person types and pastes, what is shown, and the state of the terminal afterwards.
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { until } from '../../contracts/agent-sandbox.ts';
import { AGENTS } from './agents.ts';
import { CliHome, MANY_SLOTS } from './process.ts';
import { inTerminal } from './terminal.ts';
import { NO_TMUX, type Size, Tmux } from './tmux.ts';

const home = new CliHome();
afterAll(() => home.remove());

const open: Tmux[] = [];
afterEach(async () => {
  for (const tmux of open.splice(0)) await tmux.close();
});

let terminals = 0;
async function openTerminal(size?: Size, of = home): Promise<Tmux> {
  terminals += 1;
  const tmux = await Tmux.open(of, String(terminals), size);
  open.push(tmux);
  return tmux;
}

const count = (text: string, piece: string) => text.split(piece).length - 1;

if (NO_TMUX !== null) test('at a terminal', (context) => context.skip(NO_TMUX ?? ''));
else
  describe('at a terminal', () => {
    test('a prompt is edited, sent and answered; several lines, pasted or typed, are one prompt', async () => {
      const tmux = await openTerminal();
      await tmux.chat('talk');
      await tmux.type('The codword is 日本👩‍💻 fox.');
      await tmux.press('Home', 'M-f', 'M-f', 'Left', 'Left', 'Left', 'Left');
      await tmux.type('e');
      await tmux.until(/^› The codeword is 日本/m);
      await until('the cursor is behind what was typed', async () => (await tmux.cursor()).startsWith('10,'));
      await tmux.press('C-e', 'BSpace', 'Enter');
      await tmux.until(/Noted: The codeword is 日本\S* fox$/m);
      await tmux.paste('Two lines:\n/say ## Title\\n');
      await tmux.until(/^ {2}\/say ## Title/m);
      await tmux.press('C-u');
      await tmux.type('/say - **one**\\');
      await tmux.press('Enter');
      await tmux.type('/say last');
      await tmux.press('M-Enter');
      await tmux.line('/tool Read notes');
      const screen = await tmux.until(/Noted: Two lines:/);
      expect(screen).toMatch(/^› Two lines:\n {2}\/say - \*\*one\*\*\n {2}\/say last\n {2}\/tool Read notes\n\n/m);
      expect(screen).toMatch(/✓ Read notes/);
      expect(screen).toMatch(/^• onelast/m);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: bold, as tmux shows it
      expect(await tmux.screen({ styled: true })).toMatch(/\u001b\[1m(?:\u001b\[\d+m)*one/);
      expect((await home.show('talk')).turns).toHaveLength(2);
      // The prompts are kept for the next chat.
      await tmux.press('C-d');
      await tmux.until(/To come back: "(npx )?throughline chat talk"\nleft: 0/);
      await tmux.chat('talk');
      await tmux.until(/talk .*2 turns[\s\S]*› The codeword is[\s\S]*Noted:[\s\S]*› Two lines:/);
      await tmux.press('Up', 'Up', 'Up', 'Up', 'Up');
      await tmux.until(/^› The codeword is 日本\S* fox\n?[^N]*$/m);
    });

    test('a line that begins with two slashes reaches the agent with one, and the message about a wrong command says so', async () => {
      const tmux = await openTerminal();
      await tmux.chat('slashes');
      await tmux.line('/say hello');
      await tmux.until(/There is no command \/say\..*write\s+\/\/say hello/s);
      await tmux.press('C-u');
      await tmux.line('//say hello');
      await tmux.until(/^hello$/m);
      expect((await home.show('slashes')).turns).toHaveLength(1);
    });

    test('Ctrl-C cancels the running turn and the queued ones, and pressed twice leaves the chat with the terminal as it was before', async () => {
      const tmux = await openTerminal();
      await tmux.chat('stop');
      await tmux.paste('Work.\n/stream 100000 20'); // it does not end by itself, however slow the terminal is
      await tmux.press('Enter');
      await tmux.until(/chunk\s+\d\d/);
      await tmux.line('The next one.');
      await tmux.until(/queued: The next one\./);
      await tmux.press('C-c');
      // In either order: each line is shown when its turn has ended.
      await tmux.until(/Cancelled\./);
      await tmux.until(/Turn 2 was cancelled before it began/);
      await tmux.gone(/working/);
      await tmux.paste('Hang.\n/say begun\n/hang');
      await tmux.press('Enter');
      await tmux.until(/^begun/m);
      await tmux.press('C-c', 'C-c');
      await tmux.until(/To come back: "(npx )?throughline chat stop"\nleft: 0/);
      await tmux.until(/^\$$/m);
      expect(tmux.file('after')).toBe(tmux.file('before'));
      expect((await home.show('stop')).turns.map(({ state }: { state: string }) => state)).toEqual([
        'cancelled',
        'cancelled',
        expect.stringMatching(/cancelled|interrupted/),
      ]);
    });

    test('SIGTERM ends the chat with the terminal as it was before, and shows how to come back', async () => {
      const tmux = await openTerminal();
      await tmux.chat('ended');
      await tmux.line('Hello.');
      await tmux.until(/Noted: Hello/);
      process.kill(tmux.pid, 'SIGTERM');
      await tmux.until(/To come back: "(npx )?throughline chat ended"\nleft: 7/);
      await tmux.until(/^\$$/m);
      expect(tmux.file('after')).toBe(tmux.file('before'));
      // The file gets the output a moment after the screen.
      await until('bracketed paste is off', () => {
        const raw = tmux.file(`raw-${terminals}`);
        return raw.lastIndexOf('\u001b[?2004l') > raw.lastIndexOf('\u001b[?2004h\u001b[>1u');
      });
    });

    test('without a key a new conversation begins in this directory, and --continue finds it again; NO_COLOR is respected', async () => {
      const tmux = await openTerminal();
      await tmux.line('export NO_COLOR=1');
      const cwd = ['--cwd', mkdtempSync(join(home.path, 'work-'))];
      const none = await inTerminal(home, ['chat', '--continue', ...cwd])?.ended;
      if (none !== undefined) expect(none.text).toMatch(/No conversation works in \S+ yet\. Leave out --continue/);
      await tmux.chat(...cwd);
      const screen = await tmux.until(/a new conversation, in/);
      const [, key] = /^(chat-\d{8}-\d{4}) · /m.exec(screen) ?? [];
      await tmux.line('The codeword is heron.');
      await tmux.until(/Noted/);
      await tmux.press('C-d');
      await tmux.until(new RegExp(`To come back: "(npx )?throughline chat ${key}`));
      await tmux.chat('--continue', ...cwd);
      await tmux.until(new RegExp(`^${key} .* 1 turn`, 'm'));
      expect((await home.show(key ?? '')).conversation.cwd).toBe(cwd[1]);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a style
      expect(tmux.file(`raw-${terminals}`)).not.toMatch(/\u001b\[[1-9][0-9;]*m[^\u001b]/);
    });

    test('a crash shows one sentence, and leaves the terminal as it was before', async () => {
      writeFileSync(
        join(home.path, 'crash.mjs'),
        "process.on('SIGUSR2', () => setTimeout(() => { throw new Error('it broke'); }));",
      );
      const tmux = await openTerminal();
      await tmux.line('export NODE_OPTIONS="--import=$PWD/crash.mjs"');
      await tmux.chat('crash');
      process.kill(tmux.pid, 'SIGUSR2');
      const screen = await tmux.until(/left: 1/);
      expect(screen).toMatch(/it broke/);
      expect(screen).not.toMatch(/^ +at /m);
      await tmux.until(/^\$$/m);
      expect(tmux.file('after')).toBe(tmux.file('before'));
    });

    test('Ctrl-Z stops the chat and fg continues it; without a shell the chat is not stopped, and still reads keys', async () => {
      const tmux = await openTerminal();
      await tmux.line('set -m');
      await tmux.chat('stopped');
      await tmux.type('half a draft');
      await tmux.press('C-z');
      await tmux.until(/Stopped/);
      await tmux.line('fg');
      await tmux.until(/^› half a draft/m);
      await tmux.press('Enter');
      await tmux.until(/Noted: half a draft/);
      await tmux.press('C-d');
      await tmux.until(/To come back/);
      const times = (sequence: string) => count(tmux.file(`raw-${terminals}`), sequence);
      // The keyboard mode was turned on twice and off twice. The file gets the output a moment after the screen.
      await until('the keyboard mode is off', () => times('\u001b[>1u') === 2 && times('\u001b[<u') === 2);
      const alone = await openTerminal();
      await alone.chatAlone('alone');
      const timesOn = () => count(alone.file(`raw-${terminals}`), '\u001b[>1u');
      await alone.press('C-z');
      // Keys that are typed before the chat has turned the mode on again would be read without it: Enter would then be a new line.
      await until('the keyboard mode is on again', () => timesOn() === 2);
      await alone.line('Still there?');
      await alone.until(/^Noted: Still there/m);
      expect(count(await alone.screen(), 'Still there?')).toBe(2);
    });

    test('a command that is typed while the agent answers does not end the answer', async () => {
      const tmux = await openTerminal();
      await tmux.chat('beside');
      // The agent waits in the middle of its answer, so that the command comes there, however slow the terminal is.
      const go = join(home.path, 'go');
      await tmux.paste(`Work.\n/stream 30 5\n/await ${go}\n/stream 60 5`);
      await tmux.press('Enter');
      await tmux.until(/chunk\s+30\b/);
      await tmux.line('/usage');
      await tmux.until(/This conversation/);
      writeFileSync(go, '');
      const screen = await tmux.until(/This conversation[\s\S]*chunk\s+60[\s\S]*Noted:\s+Work/);
      const chunks = screen.slice(screen.indexOf('/stream 60 5') + 12).match(/chunk\s+\d+/g) ?? [];
      const streamed = [30, 60].flatMap((length) => Array.from({ length }, (_, n) => n + 1));
      expect(chunks.map((chunk) => Number(chunk.slice(5)))).toEqual(streamed);
    });

    test('leaving asks once, and names the turn of another conversation that would be interrupted', async () => {
      const tmux = await openTerminal();
      await tmux.chat('left behind');
      await tmux.paste('Hang.\n/say begun\n/hang');
      await tmux.press('Enter');
      await tmux.until(/^begun/m);
      await tmux.line('/new elsewhere');
      await tmux.until(/^elsewhere · a new conversation/m);
      await tmux.press('C-d');
      const question =
        /Turn 1 of "left behind" runs in this process and would be interrupted\.\s+Repeat\s+to\s+leave\./;
      expect(await tmux.until(question)).not.toContain('left: ');
      await tmux.press('C-d');
      await tmux.until(/left: 0/);
      expect((await home.show('left behind')).turns[0]).toMatchObject({ state: 'interrupted' });
    });

    test('in a narrow window /help has each description below its command, and a command that takes long is shown as running', async () => {
      const narrow = new CliHome();
      onTestFinished(() => narrow.remove());
      const go = join(narrow.path, 'go');
      const slow = { adapter: 'acp', command: ['sh', '-c', `while [ ! -e '${go}' ]; do sleep 0.1; done`] };
      narrow.configure({ defaultAgent: 'scripted', agents: { ...AGENTS, slow }, turns: MANY_SLOTS });
      const tmux = await openTerminal({ columns: 30, rows: 64 }, narrow);
      await tmux.chat('narrow');
      await tmux.line('/help');
      const screen = await tmux.until(/Ctrl-D\n {2}leave, on an empty line/);
      expect(screen).toMatch(
        /^\/agent \[NAME\]\n {2}let another agent answer\n {2}the next prompt, or list\n {2}the agents$/m,
      );
      await tmux.line('/agent');
      await tmux.until(/^. running \/agent/m);
      writeFileSync(go, '');
      await tmux.until(/^scripted +default/m);
      await tmux.gone(/running \/agent/);
    });

    test('a permission is answered by key, Enter alone never allows it, and an answer from elsewhere is shown', async () => {
      const tmux = await openTerminal();
      await tmux.chat('ask');
      for (const [keys, shown] of [
        [[], 'Reject'],
        [['1'], 'Allow'],
      ] as const) {
        await tmux.paste('Please.\n/ask May I write?\n/tool write notes');
        await tmux.press('Enter');
        await tmux.until(/\? The agent asks: May I write\?\n\s+1 Allow\s+\[2 Reject\]/);
        await tmux.press(...keys, 'Enter');
        await tmux.until(new RegExp(`May I write\\? · answered: ${shown}$`, 'm'));
        await tmux.gone(/The agent asks|working/);
      }
      expect(count(await tmux.screen(), '✓ write notes')).toBe(1);
      await tmux.paste('Again.\n/ask May I read?');
      await tmux.press('Enter');
      await tmux.until(/The agent asks: May I read/);
      await tmux.type('half a draft');
      const [{ id }] = await home.lines('permissions', 'ask');
      await home.ok('answer', id, 'deny');
      await tmux.until(/May I read\? · answered: Reject, elsewhere, by local/);
      await tmux.until(/^› half a draft/m);
    });

    test('after /kill nothing is lost, and the next prompt shows the seam once', async () => {
      const tmux = await openTerminal();
      await tmux.chat('kill');
      await tmux.line('The codeword is osprey.');
      await tmux.until(/Noted/);
      await tmux.line('/kill');
      await tmux.until(/Session gone\. Nothing lost\./);
      await tmux.line('Which codewords have you seen?');
      const screen = await tmux.until(/I have seen these codewords: osprey\./);
      await tmux.gone(/working/);
      expect(screen).toMatch(/┄┄ restored by resume: 1 turn carried, 0 dropped, proof proved ┄┄/);
      expect(count(await tmux.screen(), '┄┄ restored')).toBe(1);
      await tmux.line('/fork 1');
      await tmux.until(/kill-fork .*1 turn/);
      await tmux.line('/nonsense');
      await tmux.until(/There is no command \/nonsense/);
      await tmux.line('/usage');
      await tmux.until(/This conversation, 1 turn: /);
      await tmux.line('/export copy.json');
      await tmux.until(/Wrote 1 turn to copy\.json/);
      expect(JSON.parse(tmux.file('copy.json')).records).toHaveLength(1);
      await tmux.line('/agent forgetful');
      await tmux.until(/forgetful answers from the next prompt on/);
      await tmux.line('Which codewords have you seen?');
      await tmux.until(/transcript: 1 turn carried[\s\S]*osprey\./);
      await tmux.line('/quit');
      await tmux.until(/To come back: "(npx )?throughline chat kill-fork"/);
    });

    test('the chat reconnects to a server that was killed and started again, and nothing is lost or shown twice', async () => {
      const startServer = async () => {
        const started = home.start(['serve', '--port', '0', '--json']);
        await started.until('stdout', /"url"/);
        return started;
      };
      let server = await startServer();
      const tmux = await openTerminal({ columns: 80, rows: 40 });
      await tmux.chat('served');
      await tmux.line('The codeword is heron.');
      await tmux.until(/Noted: The codeword is heron/);
      server.kill('SIGKILL');
      await server.ended;
      await tmux.line('Which codewords have you seen?');
      await tmux.until(/sending: Which codewords/);
      await tmux.until(/^! /m);
      server = await startServer();
      await tmux.until(/I have seen these codewords: heron\./);
      await tmux.until(/answers again|Connected again/);
      await tmux.gone(/working|^! /m);
      const screen = await tmux.screen({ scrolled: true });
      for (const once of ['Noted: The codeword is heron', '› Which codewords', 'codewords: heron'])
        expect([once, count(screen, once)]).toEqual([once, 1]);
      // At least once: on a busy machine a server can take more than a second to answer, and then counts as away again.
      expect(count(screen, 'again.')).toBeGreaterThanOrEqual(1);
      server.kill('SIGKILL');
      await server.ended;
      await tmux.line('Too late.');
      await tmux.until(/sending: Too late/);
      await tmux.until(/^! /m);
      await tmux.press('C-c', 'C-c');
      await tmux.until(/Not sent: Too late\.\nTo come back/);
    });

    test('in a window that is resized, every word of the answer is shown once', async () => {
      const tmux = await openTerminal({ columns: 100, rows: 30 });
      await tmux.chat('size');
      const long = 'in a line that is broken where the window is narrow and is one line where it is wide';
      await tmux.paste(`Work.\n/stream 20 10\n/ask Narrow ${long}\n/stream 50 10\n/ask Wide ${long}\n/stream 80 10`);
      await tmux.press('Enter');
      for (const [word, size] of [
        ['Narrow', { columns: 46, rows: 20 }],
        ['Wide', { columns: 90, rows: 24 }],
      ] as const) {
        // While a permission is open nothing is written. Output on its way to a terminal while it is resized is drawn for the old size,
        // and no program can prevent that.
        await tmux.until(new RegExp(`The agent asks: ${word}[\\s\\S]*\\[2 Reject\\]`));
        const before = tmux.file(`raw-${terminals}`).length;
        await tmux.resize(size);
        await until('the screen is drawn again', () => tmux.file(`raw-${terminals}`).length > before);
        await tmux.press('Enter');
      }
      await tmux.until(/chunk\s+80/);
      await tmux.gone(/working/);
      const screen = await tmux.screen({ scrolled: true });
      const chunks = screen.slice(screen.indexOf('/stream 80')).match(/chunk\s+\d+/g) ?? [];
      const streamed = [20, 50, 80].flatMap((length) => Array.from({ length }, (_, n) => n + 1));
      expect(chunks.map((chunk) => Number(chunk.slice(5)))).toEqual(streamed);
      for (const line of screen.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
      expect(count(screen, '› Work.')).toBe(1);
      expect(screen).not.toContain('The agent asks'); // both questions were shown, and removed
    });

    test('escape sequences in what an agent writes do not reach the terminal', async () => {
      const hostile =
        'red\u001b[31m \u001b[2J\u001b[Htitle\u001b]0;pwned\u0007 c1\u009b2J bidi\u202eevil \u001b[?1049h\u001b[6n**b\u001b[0m**';
      await home.ok('send', 'hostile', `/say ${hostile}\n/tool wr\u001b[2Jite no\u001b]0;pwned\u0007tes`);
      const tmux = await openTerminal();
      await tmux.chat('hostile');
      await tmux.until(/^red title/m);
      await tmux.line('/retry');
      await tmux.until(/^red title[\s\S]*^red title/m);
      await tmux.gone(/working|starting/);
      expect(await tmux.screen()).toContain('bidi\\u{202e}evil');
      expect(await tmux.cursor()).not.toContain('pwned');
      const raw = tmux.file(`raw-${terminals}`);
      const chatted = raw.slice(raw.indexOf('\u001b[>1u'));
      // biome-ignore lint/suspicious/noControlCharactersInRegex: every escape sequence that the chat itself writes
      const allowed = /\u001b\[(?:\?(?:2004|2026|25)[hl]|>1u|<u|>4;[01]m|[0-9;]*[mACKJ])|[\r\n]/g;
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters
      expect(chatted.replaceAll(allowed, '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters
      expect(chatted).not.toMatch(/\u001b\[(?:2J|6n|H)/);
      // The name of a tool is written out in full, with its control characters as marks.
      const marked = '[U+001B · control character]';
      const words = chatted.replaceAll(allowed, '');
      expect(words).toContain(`wr${marked}[2Jite no${marked}]0;pwned`);
      expect(words.replaceAll(`${marked}]0;pwned`, '')).not.toContain('pwned');
    });
  });

test('without a terminal "chat" is refused, and the error names the command to use instead', async () => {
  const { code, stderr } = await home.run('chat', 'talk');
  expect(code).toBe(2);
  expect(stderr).toBe(
    'throughline: "chat" needs a terminal for its input and its output. Use "throughline send KEY PROMPT" here.\n',
  );
  expect((await home.run('chat', '--json')).code).toBe(2);
  expect((await home.run('chat', 'talk', '--continue')).code).toBe(2);
});

test('"chat" is also refused at a terminal that cannot place its cursor', async (context) => {
  const dumb = inTerminal(home, ['chat', 'talk'], { TERM: 'dumb' });
  if (dumb === null) return context.skip('needs the program "script"');
  const { text } = await dumb.ended;
  expect(text).toContain('This terminal (TERM=dumb) cannot show a chat. Use "throughline send KEY PROMPT" here.');
});
