// The disk with Claude's config directory is full.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { ended, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { ALLOW_BASH, bash, type ClaudeAdapter, ClaudeHome, FIRST, SECOND } from '../../support/claude-home.ts';

/** Mounts a disk of 16 MB. Skips the test if that is not possible. */
class SmallDisk {
  readonly path = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-disk-')));

  constructor(context: TestContext) {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=16m,mode=700', 'tmpfs', this.path], { stdio: 'pipe' });
    } catch (error) {
      rmSync(this.path, { recursive: true });
      context.skip(`no small disk can be mounted here: ${String(error).split('\n').at(-2)}`);
    }
  }

  /** The file that fills the disk. */
  get filler(): string {
    return join(this.path, 'filler');
  }

  /**
   * A command that fills the disk. It prints more than fits into the last page of a file: the owner of a file can still write to the end of
   * that page.
   */
  get fillCommand(): string {
    return `dd if=/dev/zero of=${this.filler} bs=4k >/dev/null 2>&1 || true; head -c 8192 /dev/zero | tr '\\0' x`;
  }

  [Symbol.dispose](): void {
    execFileSync('umount', ['--lazy', this.path]);
    rmSync(this.path, { recursive: true });
  }
}

export function fullDisk(adapter: ClaudeAdapter): void {
  test('if it fills during a turn, the turn is not proved; if it is full before a turn, nothing is sent', async (context) => {
    using disk = new SmallDisk(context);
    const config = join(disk.path, 'config');
    mkdirSync(config);
    writeFileSync(join(config, 'settings.json'), JSON.stringify(ALLOW_BASH));
    await using home = await ClaudeHome.make(adapter, ALLOW_BASH, { CLAUDE_CONFIG_DIR: config });
    const tl = await home.open();
    const chat = tl.conversation('chat', { cwd: home.directory('work') });
    const first = await chat.ask(FIRST);
    expect(first.receipt.proof).toBe('proved');

    // Claude answers, but its file does not have the answer.
    const { turn, receipt, reply } = await chat.ask(`${bash(disk.fillCommand)}\nmodel: say ${SECOND}`);
    expect(turn.state).toBe('completed');
    expect(reply).toBe(SECOND);
    expect(receipt).toMatchObject({ before: 'proved', after: 'counted', proof: 'counted' });
    const requests = home.model.requests.length;
    const { turn: next } = await chat.send('Go on.').accepted;
    const { failure } = await ended(tl.engine, next);
    expect(failure).toMatchObject({ code: 'agent_failed', message: expect.stringContaining('nothing was sent') });
    expect(home.model.requests).toHaveLength(requests);

    // With free space Claude is started again. Its own file is incomplete, so a new one is written from our records.
    rmSync(disk.filler);
    await tl.close();
    const again = await (await home.open()).conversation('chat').ask(WHICH_CODEWORDS);
    expect(again.reply).toBe('I have seen these codewords: amber, birch.');
    expect(again.receipt).toMatchObject({ rung: 'rehydrate', dropped: 0, proof: 'proved' });
  });
}
