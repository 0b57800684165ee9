// Positions read from files that the real Claude wrote (2.1.325), and where it writes them.
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
import { type ClaudePlace, claudePlace, rehydrate, standing, toldTo, turnRecord } from './transcripts.ts';

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

/** Follows a session: after each turn what is read on and what is read from the beginning must agree. */
class Follower {
  readonly #place: ClaudePlace;
  readonly #reader: TranscriptReader;
  #mirror = Buffer.alloc(0);
  position: string | null = null;

  constructor(place: ClaudePlace) {
    this.#place = place;
    this.#reader = new TranscriptReader(transcriptAt(place.file));
  }

  /** The entries that the turn wrote. */
  async turn(): Promise<Entry[]> {
    const entries: Entry[] = [];
    for await (const added of this.#reader.read()) entries.push(...added);
    // A Claude that is warm may write more at any moment.
    const { size } = statSync(this.#place.file);
    const copied = await new SessionFile(transcriptAt(this.#place.file)).copy(this.#mirror.length);
    this.#mirror = Buffer.concat([this.#mirror, copied ?? Buffer.alloc(0)]);
    expect(this.#mirror.length).toBeGreaterThanOrEqual(size);
    expect(this.#mirror).toEqual(readFileSync(this.#place.file).subarray(0, this.#mirror.length));
    const cold = await standing(this.#place.file);
    expect(cold).toMatchObject({ whole: true, position: this.#reader.position });
    const links = entries.filter(isLink);
    const at = links.findIndex(({ type }) => type === 'user');
    const sent = { prompt: links[at]?.uuid ?? null, position: this.position };
    const from = await entriesFrom(transcriptAt(this.#place.file), sent);
    expect(from?.position).toBe(this.#reader.position);
    expect(from?.entries.filter(isLink)).toEqual(links.slice(at + 1));
    this.position = this.#reader.position;
    return entries;
  }
}

describe('after every turn', { timeout: 240_000 }, () => {
  test('the position is that of the whole chain: text, a tool, a compaction', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    const follower = new Follower(place);
    const seen = new Set<string | null>([null]);
    for (const [i, [prompt, reply]] of REPLIES.entries()) {
      const leaf = follower.position?.replace(/^\d+:/, '') ?? null;
      const { result } = await place.run(prompt, [
        i === 0 ? '--session-id' : '--resume',
        place.id,
        '--allowedTools',
        'Bash',
      ]);
      expect(result.is_error).toBe(false);
      const entries = await follower.turn();
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
    expect((await standing(place.file))?.chain.root).toBe('compaction');
  });

  test('in a warm process the position is final when the answer is written, and a title does not change it', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    const claude = new StreamingClaude(claudeOrSkip(context).program, place);
    try {
      const follower = new Follower(place);
      for (const prompt of ['one', TOOL]) {
        await claude.ask(prompt);
        await follower.turn();
        const { position } = follower;
        expect((await standing(place.file))?.position).toBe(position);
      }
      const { position } = follower;
      await claude.title();
      // It answers before the title is in the file.
      const titled: Entry[] = [];
      await until('the title is written', async () => {
        titled.push(...(await follower.turn()));
        return updatesOf(titled).length > 0;
      });
      expect(updatesOf(titled)).toEqual([{ sessionUpdate: 'session_info_update', title: expect.any(String) }]);
      expect(follower.position).toBe(position);
      await claude.ask('three');
      expect((await follower.turn()).find(isLink)?.parentUuid).toBe(position?.replace(/^\d+:/, ''));
      const last = follower.position;
      await claude.end();
      await follower.turn();
      expect(follower.position).toBe(last);
    } finally {
      claude.kill();
    }
  });

  test('a copy that is written back byte for byte is resumed after the file was deleted', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    await place.run('The codeword is cedar.', ['--session-id', place.id]);
    const mirror = readFileSync(place.file);
    const position = (await standing(place.file))?.position;
    rmSync(dirname(place.file), { recursive: true });
    expect((await place.resume('now')).run.errors).toContain('No conversation found');
    expect((await putTranscript(transcriptAt(place.file), mirror)).result).toBe('written');
    expect((await standing(place.file))?.position).toBe(position);
    const { run } = await place.resume('Which codewords have you seen?');
    expect(run.result.result).toBe('I have seen these codewords: cedar.');
  });
});

describe('the file of a session is in the expected place', () => {
  const long = `${'a long name/'.repeat(14)}${'日本 𝒳 '.repeat(12)}`;
  test.for<[string, { directory?: string; variables?: Record<string, string> }]>([
    ['in a directory with spaces, dots and letters of the world', { directory: 'my work_dir.v1/Grüße 日本 𝒳' }],
    ['in one whose letters are decomposed', { directory: 'cafe\u0301' }],
    ['in one with a long name', { directory: long }],
    ['in a config directory of its own', { variables: { CLAUDE_CONFIG_DIR: 'my config/cafe\u0301' } }],
    // AGENT-FACTS does not say so: a config directory that is set and empty is the working directory.
    ['in an empty config directory', { variables: { CLAUDE_CONFIG_DIR: '' } }],
    [
      'in a folder with an assigned name',
      { variables: { CLAUDE_CONFIG_DIR: 'c', CLAUDE_CODE_PROJECT_DIR_NAME: 'mine' } },
    ],
    [
      'in its usual folder when the name is bad',
      { variables: { CLAUDE_CONFIG_DIR: 'c', CLAUDE_CODE_PROJECT_DIR_NAME: 'a b' } },
    ],
    // Nor this: without CLAUDE_CONFIG_DIR the assigned name is passed over.
    ['in its usual folder when only the name is assigned', { variables: { CLAUDE_CODE_PROJECT_DIR_NAME: 'mine' } }],
  ])('%s', async ([, options], context) => {
    const place = claudePlace(context, model.current, scratch, options);
    expect(existsSync(place.file)).toBe(false);
    const { result } = await place.run('hello', ['--session-id', place.id]);
    expect(result.is_error).toBe(false);
    expect(await standing(place.file)).toMatchObject({ whole: true });
    if (options.directory === long) expect(slugOf(place.cwd).length).toBeGreaterThan(200);
  });

  test('behind a link, also for a history that we have written', async (context) => {
    const place = claudePlace(context, model.current, scratch);
    const link = join(dirname(place.cwd), 'link');
    symlinkSync(place.cwd, link);
    await rehydrate(place, [turnRecord(1)]);
    const claude = claudeOrSkip(context);
    await runClaude(claude, ['now', '--resume', place.id], { cwd: link, env: place.env });
    const told = toldTo(model.current.lastRequest());
    expect(told).toEqual(['user: prompt 1', 'assistant: answer 1', 'user: now']);
  });
});

/** Claude with its input open: one prompt after the other in one process. */
class StreamingClaude {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #lines: AsyncIterator<string>;
  readonly #ended: Promise<unknown>;
  readonly #file: string;
  /** The entries that it says it has made. */
  readonly #streamed: string[] = [];

  constructor(program: string, { id, cwd, env, file }: ClaudePlace) {
    this.#file = file;
    const formats = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
    const args = ['-p', ...formats, '--session-id', id, '--allowedTools', 'Bash'];
    this.#child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
    this.#lines = createInterface({ input: this.#child.stdout })[Symbol.asyncIterator]();
    this.#ended = new Promise((resolve) => this.#child.once('close', resolve));
  }

  /** Resolves when its result has come, and its answer is in the transcript: mostly it is by then. */
  async ask(content: string): Promise<void> {
    this.#send({ type: 'user', message: { role: 'user', content }, parent_tool_use_id: null });
    await this.#until('result');
    await until('its answer is written', () => {
      const written = readFileSync(this.#file, 'utf8');
      return this.#streamed.every((uuid) => written.includes(uuid));
    });
  }

  title(): Promise<ClaudeLine> {
    const request = { subtype: 'generate_session_title', description: 'speaking of trees', persist: true };
    this.#send({ type: 'control_request', request_id: 'title', request });
    return this.#until('control_response');
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

  async #until(type: string): Promise<ClaudeLine> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error(`Claude ended before it said ${type}`);
      const line = JSON.parse(value) as ClaudeLine;
      if (line.type === 'assistant') this.#streamed.push(String(line.uuid));
      if (line.type === type) return line;
    }
  }
}
