import { afterEach, beforeEach, expect, test } from 'vitest';
import { TestSandboxes, until } from '../../../test/contracts/agent-sandbox.ts';
import { LineProcess, StderrTail } from './line-process.ts';

let sandboxes: TestSandboxes;
let started: LineProcess[];
beforeEach(() => {
  sandboxes = new TestSandboxes();
  started = [];
});
afterEach(async () => {
  await Promise.all(started.map((process) => process.kill()));
  await sandboxes.dispose();
});

/** A program that does not read, and how many lines it has printed. */
async function deaf(script: string) {
  const sandbox = await sandboxes.sandbox();
  const heard = { lines: 0 };
  const child = await sandbox.spawn(['/bin/sh', '-c', script], { env: {} });
  const process = new LineProcess(
    child,
    {
      line: () => {
        heard.lines += 1;
      },
      tooLong: () => {},
      gone: () => {},
    },
    { closeStepMs: 100 },
  );
  started.push(process);
  return { process, heard };
}

const MIB = 'x'.repeat(2 ** 20);
const nothingFor = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test('the output of a program that does not read its input is not read', async () => {
  const { process, heard } = await deaf('yes');
  await until('it talks', () => heard.lines > 1_000);
  const before = heard.lines;
  for (let n = 0; n < 70; n += 1) process.write(MIB);
  await nothingFor(300);
  // One or two chunks may already have been in the pipe. The program prints hundreds of them in that time.
  expect(heard.lines - before).toBeLessThan(3 * 2 ** 15);
});

test('waiting for a program to read its input ends with the program', async () => {
  const { process } = await deaf('exec sleep 60');
  let taken = false;
  for (let n = 0; n < 70; n += 1) process.write(MIB);
  const waiting = process.drained().then(() => {
    taken = true;
  });
  await nothingFor(20);
  expect(taken).toBe(false);
  await process.kill();
  await waiting;
});

test('a program that reads its input can get more at any time', async () => {
  const { process } = await deaf('exec cat > /dev/null');
  for (let n = 0; n < 200; n += 1) {
    process.write(MIB);
    await process.drained();
  }
});

async function tailOf(...chunks: string[]): Promise<string> {
  const tail = new StderrTail();
  await tail.read(
    (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    })(),
  );
  return tail.text;
}

test('only the end of stderr is kept', async () => {
  const text = await tailOf(...Array.from({ length: 100 }, (_, n) => `${n} ${'x'.repeat(1_000)}\n`), 'the end');
  expect(text.length).toBeLessThanOrEqual(4_096);
  expect(text.endsWith('the end')).toBe(true);
});

test('stderr is kept without control characters', async () => {
  const text = await tailOf('a \u001b[31mloud\u001b[0m\u001b]0;title\u0007 com\u009bplaint\u0000\r\n\tand more');
  expect(text).toBe('a loud]0;title complaint\n\tand more');
});

test('a broken pipe ends stderr', async () => {
  const tail = new StderrTail();
  await tail.read(
    (async function* () {
      yield Buffer.from('before');
      throw new Error('broken');
    })(),
  );
  expect(tail.text).toBe('before');
});

test('a message is one line, whichever characters a reader treats as line ends', async () => {
  const lines: string[] = [];
  const reader =
    'for await (const line of require("readline").createInterface(process.stdin)) console.log(line.length)';
  const sandbox = await sandboxes.sandbox();
  const child = await sandbox.spawn([globalThis.process.execPath, '-e', `(async () => { ${reader} })()`], { env: {} });
  const listener = { line: (line: string) => lines.push(line), tooLong: () => {}, gone: () => {} };
  const process = new LineProcess(child, listener, { closeStepMs: 100 });
  started.push(process);
  process.send({ text: 'a\u2028b\u2029c' });
  process.send({ text: 'the end' });
  await until('both are read', () => lines.length === 2);
  expect(lines).toEqual([String('{"text":"a\\u2028b\\u2029c"}'.length), String('{"text":"the end"}'.length)]);
});
