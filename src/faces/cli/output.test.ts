import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Output, type OutputOptions, styled } from './output.ts';

function written(options: Partial<OutputOptions> & { tty?: boolean; columns?: number } = {}) {
  const text = { stdout: '', stderr: '' };
  const lost: ((error: NodeJS.ErrnoException) => void)[] = [];
  const sink = (name: 'stdout' | 'stderr') => ({
    isTTY: options.tty ?? false,
    columns: options.columns ?? 80,
    write: (chunk: string) => {
      text[name] += chunk;
    },
    on: (_: 'error', listener: (error: NodeJS.ErrnoException) => void) => lost.push(listener),
  });
  const defaults = { stdout: sink('stdout'), stderr: sink('stderr'), json: false, quiet: false, color: true };
  const output = new Output({ ...defaults, ...options });
  return { output, text, loseReader: () => lost[0]?.(Object.assign(new Error('gone'), { code: 'EPIPE' })) };
}

test('a style is the only escape code, and only for a terminal', () => {
  const piece = styled('red', 'a\u001b[2Jb');
  const plain = written();
  plain.output.line(piece);
  expect(plain.text.stdout).toBe('ab\n');
  const terminal = written({ tty: true });
  terminal.output.line(piece);
  expect(terminal.text.stdout).toBe('\u001b[31mab\u001b[0m\n');
  const colourless = written({ tty: true, color: false });
  colourless.output.line(piece);
  expect(colourless.text.stdout).toBe('ab\n');
});

test('an answer ends with exactly one newline', () => {
  const { output, text } = written();
  output.text('one\n');
  output.endText();
  output.text('two');
  output.endText();
  output.endText();
  expect(text.stdout).toBe('one\ntwo\n');
});

test('an incomplete escape sequence of one answer does not affect the next', () => {
  const { output, text } = written();
  output.text('one\u001b[');
  output.endText();
  output.text('31m is text here');
  output.endText();
  expect(text.stdout).toBe('one\n31m is text here\n');
});

test('the hint is separated from the message of the agent', () => {
  const { output, text } = written();
  output.failure({ code: 'agent_failed', message: 'Not logged in', hint: 'Log in.' });
  expect(text.stderr).toBe('throughline: Not logged in. Log in.\n');
});

test('quiet leaves out notes and progress, and never a failure or a question', () => {
  const { output, text } = written({ quiet: true, tty: true, color: false });
  output.note('a note');
  output.progress('working');
  output.failure({ code: 'invalid', message: 'No.', hint: 'Yes.' });
  output.ask('Really?');
  expect(text.stderr).toBe('throughline: No. Yes.\nReally?\n');
});

test('progress is shown only on a terminal, and removed when something else is written', () => {
  const file = written();
  file.output.progress('working');
  expect(file.text.stderr).toBe('');
  const json = written({ json: true, tty: true });
  json.output.progress('working');
  expect(json.text.stderr).toBe('');
  const terminal = written({ tty: true });
  terminal.output.progress('working');
  terminal.output.text('answer');
  terminal.output.progress('would be in the middle of a line');
  expect(terminal.text.stderr).toBe('\r\u001b[Kworking\r\u001b[K');
});

describe('a wait at a terminal', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test('is shown with its seconds, removed for other output, and shown again when no more output comes', () => {
    const { output, text } = written({ tty: true });
    output.progress('waiting for the agent …');
    vi.advanceTimersByTime(2_100);
    expect(text.stderr.endsWith('\r\u001b[Kwaiting for the agent … 2 s')).toBe(true);
    text.stderr = '';
    output.note('tool: ls');
    expect(text.stderr).toBe('\r\u001b[Ktool: ls\n');
    text.stderr = '';
    vi.advanceTimersByTime(1_000);
    expect(text.stderr.startsWith('\r\u001b[Kwaiting for the agent …')).toBe(true);
    output.progress(null);
    text.stderr = '';
    vi.advanceTimersByTime(60_000);
    expect(text.stderr).toBe('');
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is not shown for short waits, nor in the middle of an answer', () => {
    const { output, text } = written({ tty: true });
    output.waitFor('reading …');
    vi.advanceTimersByTime(400);
    output.text('half an answer');
    vi.advanceTimersByTime(60_000);
    expect(text.stderr).toBe('');
    output.text('\n');
    vi.advanceTimersByTime(1_000);
    expect(text.stderr).toContain('reading …');
    output.waitFor(null);
  });

  test('is cut to the width of the terminal, so that it can be removed', () => {
    const { output, text } = written({ tty: true, columns: 20 });
    output.progress('waiting for a very long reason 日本語');
    expect(text.stderr).toBe('\r\u001b[Kwaiting for a very…');
    output.progress(null);
  });

  test('is not shown in a pipe, where its reason is one line', () => {
    const { output, text } = written();
    output.progress('waiting …');
    vi.advanceTimersByTime(60_000);
    output.explainWait('another process runs earlier turns first.');
    expect(text.stderr).toBe('Waiting: another process runs earlier turns first.\n');
    expect(vi.getTimerCount()).toBe(0);
  });
});

test('a note in the middle of an answer starts a new line on a terminal', () => {
  const { output, text } = written({ tty: true });
  output.text('half a line');
  output.note('note');
  expect(text.stderr).toBe('\nnote\n');
});

test('with --json an error is one JSON line, and only errors are written besides the values', () => {
  const { output, text } = written({ json: true });
  output.note('a note');
  output.failure({ code: 'not_found', message: 'There is\nnone.' });
  expect(text.stderr).toBe('{"error":{"code":"not_found","message":"There is\\nnone."}}\n');
});

test('nothing more is written after the reader has closed the pipe', () => {
  const { output, text, loseReader } = written();
  output.line('one');
  expect(output.gone.aborted).toBe(false);
  loseReader();
  output.line('two');
  output.note('stderr has a reader still');
  expect(output.gone.aborted).toBe(true);
  expect(text).toEqual({ stdout: 'one\n', stderr: 'stderr has a reader still\n' });
});
