// Positions that we read from the transcripts of the real Claude (2.1.325), and where Claude writes these files.
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { afterAll, describe, expect, test } from 'vitest';
import { SessionFile } from '../../../../src/agents/claude/session/session-file.ts';
import { type Entry, isLink } from '../../../../src/agents/claude/transcript/entries.ts';
import { slugOf } from '../../../../src/agents/claude/transcript/locate.ts';
import { entriesFrom } from '../../../../src/agents/claude/transcript/position.ts';
import { TranscriptReader } from '../../../../src/agents/claude/transcript/reader.ts';
import { updatesOf } from '../../../../src/agents/claude/transcript/updates.ts';
import { putTranscript } from '../../../../src/agents/claude/transcript/write.ts';
import { PartsBuilder } from '../../../../src/core/turn/record.ts';
import { until } from '../../../contracts/agent-sandbox.ts';
import { transcriptAt } from '../../../contracts/transcript-file.ts';
import { modelForTests } from '../../../model/speaking.ts';
import { type ClaudeLine, claudeOrSkip, runClaude } from '../../support/claude.ts';
import {
  type ClaudeSetup,
  claudeSetup,
  linesOfRequest,
  transcriptState,
  turnRecord,
  writeTranscript,
} from './transcripts.ts';

const model = modelForTests();
const scratch = mkdtempSync(join(tmpdir(), 'throughline-positions-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const COMMAND = JSON.stringify({ command: 'echo The codeword is birch.', description: 'Say it' });
const TOOL = `model: tool Bash ${COMMAND}\nmodel: say That was it.`;
const REPLIES: readonly [prompt: string, reply: RegExp | null][] = [
  ['The codeword is amber.', /^Acknowledged/],
  [TOOL, /^That was it\.$/],
  ['third', /^Acknowledged/],
  ['/compact', null],
  ['Which codewords have you seen?', /amber, birch/],
];

/** Reads the new entries of a transcript after each turn, and checks them against the whole file. */
class TranscriptFollower {
  readonly #setup: ClaudeSetup;
  readonly #reader: TranscriptReader;
  /** A copy of the file, extended after each turn. */
  #mirror = Buffer.alloc(0);
  position: string | null = null;

  constructor(setup: ClaudeSetup) {
    this.#setup = setup;
    this.#reader = new TranscriptReader(transcriptAt(setup.file));
  }

  /** The entries since the last call. */
  async readTurn(): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const added of this.#reader.read()) entries.push(...added);
    // A running Claude may write more at any moment, so the copy may be longer than `size`.
    const { size } = statSync(this.#setup.file);
    const copied = await new SessionFile(transcriptAt(this.#setup.file)).copy(this.#mirror.length);
    this.#mirror = Buffer.concat([this.#mirror, copied ?? Buffer.alloc(0)]);
    expect(this.#mirror.length).toBeGreaterThanOrEqual(size);
    expect(this.#mirror).toEqual(readFileSync(this.#setup.file).subarray(0, this.#mirror.length));
    const fromBeginning = await transcriptState(this.#setup.file);
    expect(fromBeginning).toMatchObject({ whole: true, position: this.#reader.position });
    const links = entries.filter(isLink);
    const promptIndex = links.findIndex(({ type }) => type === 'user');
    const sent = { prompt: links[promptIndex]?.uuid ?? null, position: this.position };
    const sinceTurn = await entriesFrom(transcriptAt(this.#setup.file), sent);
    expect(sinceTurn?.position).toBe(this.#reader.position);
    expect(sinceTurn?.entries.filter(isLink)).toEqual(links.slice(promptIndex + 1));
    this.position = this.#reader.position;
    return entries;
  }
}

describe('after every turn', { timeout: 240_000 }, () => {
  test('the position is the end of the chain: after a text, a tool and a compaction', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    const follower = new TranscriptFollower(setup);
    const seen = new Set<string | null>([null]);
    for (const [i, [prompt, reply]] of REPLIES.entries()) {
      const leaf = follower.position?.replace(/^\d+:/, '') ?? null;
      const { result } = await setup.run(prompt, [
        i === 0 ? '--session-id' : '--resume',
        setup.id,
        '--allowedTools',
        'Bash',
      ]);
      expect(result.is_error).toBe(false);
      const entries = await follower.readTurn();
      expect(seen.has(follower.position)).toBe(false);
      seen.add(follower.position);
      const first = entries.find(isLink);
      if (first?.subtype === 'compact_boundary')
        expect(first).toMatchObject({ parentUuid: null, logicalParentUuid: leaf });
      else expect(first?.parentUuid).toBe(leaf);
      const parts = new PartsBuilder();
      for (const update of updatesOf(entries)) parts.add(update);
      const texts = parts.parts().flatMap((part) => (part.type === 'text' ? part.text : []));
      expect(texts).toEqual(reply === null ? [] : [expect.stringMatching(reply)]);
      if (prompt === TOOL) {
        expect(parts.parts()[0]).toMatchObject({ name: 'Bash', status: 'completed', output: 'The codeword is birch.' });
      }
    }
    expect((await transcriptState(setup.file))?.chain.root).toBe('compaction');
  });

  test('the position of a running process is final when its answer is written, and a title does not change it', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    const claude = new StreamingClaude(claudeOrSkip(context).program, setup);
    try {
      const follower = new TranscriptFollower(setup);
      for (const prompt of ['one', TOOL]) {
        await claude.ask(prompt);
        await follower.readTurn();
        const { position } = follower;
        expect((await transcriptState(setup.file))?.position).toBe(position);
      }
      const { position } = follower;
      await claude.requestTitle();
      // Claude answers before the title is in the file.
      const newEntries: Entry[] = [];
      await until('the title is written', async () => {
        newEntries.push(...(await follower.readTurn()));
        return updatesOf(newEntries).length > 0;
      });
      expect(updatesOf(newEntries)).toEqual([{ sessionUpdate: 'session_info_update', title: expect.any(String) }]);
      expect(follower.position).toBe(position);
      await claude.ask('three');
      expect((await follower.readTurn()).find(isLink)?.parentUuid).toBe(position?.replace(/^\d+:/, ''));
      const last = follower.position;
      await claude.end();
      await follower.readTurn();
      expect(follower.position).toBe(last);
    } finally {
      claude.kill();
    }
  });

  test('a deleted transcript that is written back from a copy has its position again and is resumed', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    await setup.run('The codeword is cedar.', ['--session-id', setup.id]);
    const mirror = readFileSync(setup.file);
    const position = (await transcriptState(setup.file))?.position;
    rmSync(dirname(setup.file), { recursive: true });
    expect((await setup.resume('now')).run.errors).toContain('No conversation found');
    expect((await putTranscript(transcriptAt(setup.file), mirror)).result).toBe('written');
    expect((await transcriptState(setup.file))?.position).toBe(position);
    const { run } = await setup.resume('Which codewords have you seen?');
    expect(run.result.result).toBe('I have seen these codewords: cedar.');
  });
});

describe('Claude writes the file of a session where we look for it:', () => {
  const long = `${'a long name/'.repeat(14)}${'日本 𝒳 '.repeat(12)}`;
  test.for<[string, { directory?: string; variables?: Record<string, string> }]>([
    ['in a directory with spaces, dots and non-ASCII letters', { directory: 'my work_dir.v1/Grüße 日本 𝒳' }],
    ['in a directory with decomposed letters', { directory: 'cafe\u0301' }],
    ['in a directory with a long path', { directory: long }],
    ['with CLAUDE_CONFIG_DIR', { variables: { CLAUDE_CONFIG_DIR: 'my config/cafe\u0301' } }],
    // An empty value means the working directory.
    ['with an empty CLAUDE_CONFIG_DIR', { variables: { CLAUDE_CONFIG_DIR: '' } }],
    [
      'with CLAUDE_CODE_PROJECT_DIR_NAME',
      { variables: { CLAUDE_CONFIG_DIR: 'c', CLAUDE_CODE_PROJECT_DIR_NAME: 'mine' } },
    ],
    [
      'with an invalid CLAUDE_CODE_PROJECT_DIR_NAME, which Claude ignores',
      { variables: { CLAUDE_CONFIG_DIR: 'c', CLAUDE_CODE_PROJECT_DIR_NAME: 'a b' } },
    ],
    [
      'with CLAUDE_CODE_PROJECT_DIR_NAME alone, which Claude ignores without CLAUDE_CONFIG_DIR',
      { variables: { CLAUDE_CODE_PROJECT_DIR_NAME: 'mine' } },
    ],
  ])('%s', async ([, options], context) => {
    const setup = claudeSetup(context, model.current, scratch, options);
    expect(existsSync(setup.file)).toBe(false);
    const { result } = await setup.run('hello', ['--session-id', setup.id]);
    expect(result.is_error).toBe(false);
    expect(await transcriptState(setup.file)).toMatchObject({ whole: true });
    if (options.directory === long) expect(slugOf(setup.cwd).length).toBeGreaterThan(200);
  });

  test('in a directory that is reached by a symbolic link, also for a transcript that we have written', async (context) => {
    const setup = claudeSetup(context, model.current, scratch);
    const link = join(dirname(setup.cwd), 'link');
    symlinkSync(setup.cwd, link);
    await writeTranscript(setup, [turnRecord(1)]);
    const claude = claudeOrSkip(context);
    await runClaude(claude, ['now', '--resume', setup.id], { cwd: link, env: setup.env });
    expect(linesOfRequest(model.current.lastRequest())).toEqual(['user: prompt 1', 'assistant: answer 1', 'user: now']);
  });
});

/** One process of Claude that gets several prompts. */
class StreamingClaude {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  readonly #file: string;
  /** The ids of the entries that Claude has reported. */
  readonly #reported: string[] = [];

  constructor(program: string, { id, cwd, env, file }: ClaudeSetup) {
    this.#file = file;
    const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
    const args = ['-p', ...formats, '--session-id', id, '--allowedTools', 'Bash'];
    this.#child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Waits for the result, and until the answer is in the transcript. Claude may write it after the result. */
  async ask(content: string): Promise<void> {
    this.#send({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
    await this.#lineOfType('result');
    await until('its answer is written', () => {
      const written = readFileSync(this.#file, 'utf8');
      return this.#reported.every((uuid) => written.includes(uuid));
    });
  }

  requestTitle(): Promise<ClaudeLine> {
    const request = { subtype: 'generate_session_title', description: 'speaking of trees', persist: true };
    this.#send({ type: 'control_request', request_id: 'title', request });
    return this.#lineOfType('control_response');
  }

  end(): Promise<unknown> {
    this.#child.stdin.end();
    return this.#ended;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #send(message: object): void {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  async #lineOfType(type: string): Promise<ClaudeLine> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`Claude ended before it sent a line of the type ${type}`);
      const line = JSON.parse(value) as ClaudeLine;
      if (line.type === 'assistant') this.#reported.push(String(line.uuid));
      if (line.type === type) return line;
    }
  }
}
