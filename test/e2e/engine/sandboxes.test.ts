import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { allEvents, event, refusedWith, until, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

test('several conversations of an owner share a sandbox by its name, and its uses name their sessions', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [one, two] = ['one', 'two'].map((key) => tl.conversation(key, { sandbox: 'website' }));
  await one?.ask('/tool write note.txt');
  const { reply } = (await two?.ask('Which directory are you in?')) ?? {};
  const [use, other] = [await one?.sandbox(), await two?.sandbox()];
  expect(use).toEqual({
    ...{ owner: 'local', conversationId: (await one?.get())?.id },
    ...{ sandboxId: other?.sandboxId, sessionId: (await one?.sessions())?.[0]?.id },
  });
  expect(reply).toContain(use?.sandboxId);
  const { sandbox, uses, setup } = await tl.sandbox('website').show();
  expect(sandbox).toMatchObject({ id: use?.sandboxId, name: 'website', state: 'ready', conversations: 2, disk: null });
  expect(setup).toEqual([]);
  expect(uses).toHaveLength(2);
  expect(uses).toEqual(expect.arrayContaining([use, other]));
  expect(await tl.sandbox(sandbox.id).show()).toEqual(await tl.sandbox('website').show());
});

test('each owner has separate sandboxes, also under the same name', async () => {
  await using home = new Home();
  const tl = await home.open();
  const [ann, bob] = [tl.as('ann'), tl.as('bob')];
  await ann.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  await bob.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  const [{ id: anns } = { id: '' }] = await ann.sandboxes();
  const [{ id: bobs } = { id: '' }] = await bob.sandboxes();
  expect(anns).not.toBe(bobs);
  expect(await ann.sandboxes()).toMatchObject([{ name: 'website', owner: 'ann', conversations: 1 }]);
  await refusedWith('not_found', bob.sandbox(anns).show(), /no sandbox/);
  await refusedWith('not_found', tl.sandbox('website').show(), /no sandbox/);
});

test('sandboxes are listed newest first, in pages, and the sandbox of a single conversation has no name', async () => {
  await using home = new Home();
  const tl = await home.open();
  for (const key of ['a', 'b', 'c']) await tl.conversation(key).ask('Hello.');
  const ids = await Promise.all(['c', 'b', 'a'].map(async (key) => (await tl.conversation(key).get()).id));
  expect((await tl.sandboxes()).map(({ id }) => id)).toEqual(ids);
  expect((await tl.sandboxes({ limit: 1, before: ids[0] as string })).map(({ id, name }) => [id, name])).toEqual([
    [ids[1], null],
  ]);
  expect(await tl.sandboxes({ before: ids[2] as string })).toEqual([]);
});

test('a shared sandbox has events for its creation and its reopening in another process; one of a single conversation has none', async () => {
  await using home = new Home();
  const tl = await home.open({ maxWarm: 0 });
  await tl.conversation('shared', { sandbox: 'website' }).ask('Hello.');
  await tl.conversation('shared').ask('Hello again.');
  await tl.conversation('alone').ask('Hello.');
  await tl.close();
  const next = await home.open();
  await next.conversation('shared').ask('And again.');
  await next.conversation('alone').ask('Hello again.');
  const { id } = (await next.sandbox('website').show()).sandbox;
  const sandboxEvents = async (key: string) =>
    (await allEvents(next.engine, key)).flatMap(({ kind, payload }) =>
      kind.startsWith('sandbox.') ? [{ kind, payload }] : [],
    );
  expect(await sandboxEvents('shared')).toEqual([
    { kind: 'sandbox.created', payload: { sandboxId: id, name: 'website' } },
    { kind: 'sandbox.reopened', payload: { sandboxId: id, name: 'website' } },
  ]);
  expect(await sandboxEvents('alone')).toEqual([]);
});

/** A set-up step that runs a shell script in the working directory. */
const step = (name: string, script: string) => ({ name, command: ['/bin/sh', '-c', script] });

test('set-up steps run once in a sandbox, for all conversations and processes, and their output is kept', async () => {
  await using home = new Home();
  const settings = {
    sandbox: { setup: [step('first', 'echo one >> ran; echo hello'), step('second', 'echo two >> ran')] },
  };
  const tl = await home.open({}, home.with(settings));
  await Promise.all(['a', 'b'].map((key) => tl.conversation(key, { sandbox: 'website' }).ask('Hello.')));
  await tl.close();
  const next = await home.open({}, home.with(settings));
  await next.conversation('a').ask('Hello again.');
  const { sandbox, setup } = await next.sandbox('website').show();
  expect(readFileSync(join(home.sandboxes, sandbox.id, 'work', 'ran'), 'utf8')).toBe('one\ntwo\n');
  expect(setup).toMatchObject([
    { name: 'first', code: 0, output: 'hello' },
    { name: 'second', code: 0, output: '' },
  ]);
  const events = [...(await allEvents(next.engine, 'a')), ...(await allEvents(next.engine, 'b'))];
  expect(events.flatMap(({ kind, payload }) => (kind === 'sandbox.set-up' ? [payload.steps] : []))).toMatchObject([
    [{ name: 'first' }, { name: 'second' }],
  ]);
});

test.each(['the same process', 'another process'])(
  'a sandbox whose files somebody has deleted is created and set up again by %s, and the conversation is restored',
  async (which) => {
    await using home = new Home();
    const settings = { sandbox: { setup: [step('first', 'echo one >> ran')] } };
    const tl = await home.open({}, home.with(settings));
    await tl.conversation('chat').ask('Hello.');
    const { id } = await tl.conversation('chat').get();
    if (which === 'another process') await tl.close();
    rmSync(join(home.sandboxes, id), { recursive: true });
    const next = which === 'another process' ? await home.open({}, home.with(settings)) : tl;
    const { turn, receipt } = await next.conversation('chat').ask('Hello again.');
    expect([turn.state, receipt?.rung]).toEqual(['completed', 'transcript']);
    expect(readFileSync(join(home.sandboxes, id, 'work', 'ran'), 'utf8')).toBe('one\n');
    // The next turn finds it ready.
    expect((await next.conversation('chat').ask('Once more.')).receipt?.rung).toBe('live');
    expect(readFileSync(join(home.sandboxes, id, 'work', 'ran'), 'utf8')).toBe('one\n');
  },
);

test('a failed step fails the turn and is tried again at the next; changed steps run again, with all after them', async () => {
  await using home = new Home();
  const setup = [step('first', 'echo one >> ran'), step('check', 'test -e go || { echo no go; exit 3; }')];
  const tl = await home.open({}, home.with({ sandbox: { setup } }));
  const chat = tl.conversation('chat');
  await refusedWith('refused', chat.ask('Hello.'), /set-up step "check" failed with exit code 3: no go/);
  const { id } = await chat.get();
  const work = join(home.sandboxes, id, 'work');
  writeFileSync(join(work, 'go'), '');
  expect((await chat.ask('Hello.')).turn.state).toBe('completed');
  expect(readFileSync(join(work, 'ran'), 'utf8')).toBe('one\n');
  expect((await tl.sandbox(id).show()).setup.map(({ name, code }) => [name, code])).toEqual([
    ['first', 0],
    ['check', 0],
  ]);
  await tl.close();
  const changed = [setup[0], step('middle', 'echo middle >> ran'), setup[1]];
  const next = await home.open({}, home.with({ sandbox: { setup: changed } }));
  await next.conversation('chat').ask('Hello.');
  expect(readFileSync(join(work, 'ran'), 'utf8')).toBe('one\nmiddle\n');
  expect((await next.sandbox(id).show()).setup.map(({ name }) => name)).toEqual(['first', 'middle', 'check']);
});

test('links of the settings lead to shared folders, and never replace a folder of the same name', async () => {
  await using home = new Home();
  const shared = join(home.path, 'shared');
  mkdirSync(shared);
  writeFileSync(join(shared, 'guide.txt'), 'shared');
  const links = [{ name: 'docs', path: shared }];
  const tl = await home.open({}, home.with({ sandbox: { links } }));
  await tl.conversation('chat').ask('Hello.');
  const work = join(home.sandboxes, (await tl.conversation('chat').get()).id, 'work');
  expect(readFileSync(join(work, 'docs', 'guide.txt'), 'utf8')).toBe('shared');
  await tl.close();
  const next = await home.open({}, home.with({ sandbox: { links: [{ name: 'mine', path: shared }] } }));
  mkdirSync(join(work, 'mine'));
  await refusedWith('refused', next.conversation('chat').ask('Hello.'), /link mine.*exists and is no link/);
  expect(readdirSync(join(work, 'mine'))).toEqual([]);
});

test('a command runs in a sandbox that was opened by its name, and its size can be measured', async () => {
  await using home = new Home();
  const tl = await home.open();
  const website = tl.sandbox('website');
  expect(await website.open()).toMatchObject({ name: 'website', state: 'ready', conversations: 0 });
  const ran = await website.exec(['/bin/sh', '-c', 'head -c 300000 /dev/zero > big; pwd; exit 3']);
  const { sandbox } = await website.show({ measure: true });
  expect(ran).toMatchObject({ code: 3, stdout: `${join(home.sandboxes, sandbox.id, 'work')}\n`, cut: false });
  expect(sandbox.disk).toMatchObject({ copies: 0, at: expect.any(Number) });
  expect(sandbox.disk?.work).toBeGreaterThan(290_000);
  expect((await tl.sandboxes())[0]?.disk).toEqual(sandbox.disk);
  await refusedWith('invalid', website.exec([]), /must be a list/);
});

test('a command that takes too long is ended, and its result says so and has what it printed; a set-up that takes too long is refused', async () => {
  await using home = new Home();
  const tl = await home.open({ execMs: 1_000 });
  await tl.sandbox('website').open();
  const ran = await tl.sandbox('website').exec(['/bin/sh', '-c', 'echo begun; sleep 600']);
  expect(ran).toMatchObject({ code: null, signal: 'SIGKILL', timedOut: true, stdout: 'begun\n', stderr: '' });
  expect(await tl.sandbox('website').exec(['/bin/sh', '-c', 'kill -9 $$'])).toMatchObject({
    ...{ code: null, signal: 'SIGKILL', timedOut: false },
  });
  await tl.close();
  const slow = { sandbox: { setup: [step('slow', 'echo begun >> ran; sleep 600')] } };
  const next = await home.open({ execMs: 500 }, home.with(slow));
  await refusedWith('timed_out', next.sandbox('website').exec(['true']), /not ready after .* Nothing was run/);
});

test('sandboxes are measured one at a time, and each once although many calls ask for its size', async () => {
  await using home = new Home();
  // A `du` that counts its runs, and fails while another one runs.
  const [bin, runs] = [join(home.path, 'bin'), join(home.path, 'runs')];
  mkdirSync(bin);
  const du = `#!/bin/sh\nmkdir ${runs}.now || exit 9\necho run >> ${runs}\n${which('du')} "$@"\nrmdir ${runs}.now\n`;
  writeFileSync(join(bin, 'du'), du, { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  const now = vi.spyOn(Date, 'now').mockReturnValue(Date.now());
  onTestFinished(() => {
    now.mockRestore();
    vi.unstubAllEnvs();
  });
  const tl = await home.open();
  const names = ['one', 'two', 'three'];
  await Promise.all(names.map((name) => tl.sandbox(name).open()));
  const shown = await Promise.all(
    names.flatMap((name) => Array.from({ length: 20 }, () => tl.sandbox(name).show({ measure: true }))),
  );
  expect(shown.filter(({ sandbox }) => sandbox.disk === null)).toEqual([]);
  for (const name of names) await tl.sandbox(name).show({ measure: true }); // just measured
  expect(readFileSync(runs, 'utf8').match(/run/g)).toHaveLength(3);
  now.mockReturnValue(Date.now() + 3_000); // the last measurement is too old now
  await tl.sandbox('one').show({ measure: true });
  expect(readFileSync(runs, 'utf8').match(/run/g)).toHaveLength(4);
});

test('a turn in a sandbox that is too large is refused', async () => {
  await using home = new Home();
  const tl = await home.open({}, home.with({ sandbox: { diskMb: 1 } }));
  const chat = tl.conversation('chat', { sandbox: 'website' });
  await chat.ask('Hello.');
  await tl.sandbox('website').exec(['/bin/sh', '-c', 'head -c 3000000 /dev/zero > big']);
  await refusedWith('refused', chat.ask('Hello.'), /has 3 MiB; the limit is 1/);
  const { disk } = (await tl.sandbox('website').show()).sandbox;
  const bytes = (disk?.work ?? 0) + (disk?.state ?? 0) + (disk?.copies ?? 0);
  expect(bytes).toBeGreaterThan(3_000_000);
  expect(await tl.sandboxesDiskUse()).toEqual({ sandboxes: 1, bytes });
});

test('a turn is refused if its sandbox has a size limit and cannot be measured', async () => {
  await using home = new Home();
  const bin = join(home.path, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'du'), '#!/bin/sh\necho "du: no"; exit 1\n', { mode: 0o755 });
  vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const tl = await home.open({}, home.with({ sandbox: { diskMb: 1 } }));
  const chat = tl.conversation('chat', { sandbox: 'website' });
  await refusedWith('refused', chat.ask('Hello.'), /sandbox website cannot be measured/);
});

test('a sandbox rests when nothing runs in it any more, and the next turn reopens it', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat', { sandbox: 'website' });
  await chat.ask('The codeword is heron.');
  expect(await tl.sandbox('website').rest()).toMatchObject({ name: 'website', state: 'resting' });
  expect((await chat.sessions())[0]?.state).toBe('dormant');
  expect((await chat.ask(WHICH_CODEWORDS)).reply).toContain('heron');
  expect((await tl.sandbox('website').show()).sandbox.state).toBe('ready');
  const kinds = (await allEvents(tl.engine, 'chat'))
    .map(({ kind }) => kind)
    .filter((kind) => kind.startsWith('sandbox.'));
  expect(kinds).toEqual(['sandbox.created', 'sandbox.rested', 'sandbox.reopened']);
});

test('a sandbox is neither put to rest nor removed while a turn runs in it', async () => {
  await using home = new Home();
  const tl = await home.open();
  const { turn } = await tl.engine.submit((await tl.engine.ensure({ key: 'chat', sandbox: 'website' })).id, '/hang');
  await event(tl.engine, 'chat', 'turn.sent');
  await refusedWith('conflict', tl.sandbox('website').rest(), /in use/);
  await refusedWith('conflict', tl.sandbox('website').remove({ force: true }), /in use/);
  await tl.engine.cancel(turn.id);
});

test('a sandbox is neither put to rest nor removed while a command of any process runs in it, and can be removed when the command has ended', async () => {
  await using home = new Home();
  const [tl, other] = [await home.open(), await home.open()];
  const website = tl.sandbox('website');
  const { id } = await website.open();
  const work = join(home.sandboxes, id, 'work');
  const waiting = (name: string) => {
    const script = `touch ${name}; until [ -e ${name}.go ]; do sleep 0.05; done; rm ${name} ${name}.go`;
    return website.exec(['/bin/sh', '-c', script]);
  };
  const commands = [waiting('one'), waiting('two')];
  await until('both run', () => existsSync(join(work, 'one')) && existsSync(join(work, 'two')));
  const refused = async () => {
    for (const one of [tl, other]) {
      await refusedWith('conflict', one.sandbox('website').rest(), /in use: a command runs in it/);
      await refusedWith('conflict', one.sandbox('website').remove({ force: true }), /in use: a command runs in it/);
    }
  };
  await refused();
  writeFileSync(join(work, 'one.go'), '');
  await commands[0];
  await refused();
  // Meanwhile, a turn can run in the sandbox.
  await other.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  await other.conversation('chat').kill();
  writeFileSync(join(work, 'two.go'), '');
  expect(await commands[1]).toMatchObject({ code: 0 });
  await other.sandbox('website').remove();
});

test('a removal holds the sandbox while it looks for unsaved work, and is refused if a turn comes meanwhile', async () => {
  await using home = new Home();
  const tl = await home.open({ leaseMs: 600 });
  await tl.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  const pushed = `git init -q --bare ${home.path}/remote; git clone -q ${home.path}/remote site 2>&1; cd site
    git -c user.name=a -c user.email=a commit -q --allow-empty -m one; git push -q origin HEAD 2>&1`;
  expect(await tl.sandbox('website').exec(['/bin/sh', '-ec', pushed])).toMatchObject({ code: 0 });
  // A `git` that leaves a file when it is called to look for unsaved work, and never ends.
  const [bin, called] = [join(home.path, 'bin'), join(home.path, 'called')];
  mkdirSync(bin);
  writeFileSync(join(bin, 'git'), `#!/bin/sh\ntouch ${called}; exec sleep 100000\n`, { mode: 0o755 });
  const { PATH } = process.env;
  vi.stubEnv('PATH', `${bin}:${PATH}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const removing = refusedWith('conflict', tl.sandbox('website').remove(), /in use/);
  await until('the removal looks for unsaved work', () => existsSync(called));
  const heldUntil = () => home.query<{ at: number }>('SELECT held_until AS at FROM sandboxes')[0]?.at ?? 0;
  const first = heldUntil();
  await until('its first lease is over', () => heldUntil() > first + 600);
  expect((await tl.conversation('chat').ask('Hello again.')).turn.state).toBe('completed');
  await removing;
  expect(existsSync(join(home.sandboxes, (await tl.sandbox('website').show()).sandbox.id, 'work', 'site'))).toBe(true);
  vi.stubEnv('PATH', PATH);
  await tl.sandbox('website').remove();
});

test('a sandbox is not removed while a conversation of any sandbox has its directory inside', async () => {
  await using home = new Home();
  const tl = await home.open({ maxWarm: 0 });
  await tl.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  const website = tl.sandbox('website');
  const { id } = (await website.show()).sandbox;
  const cwd = join(home.sandboxes, id, 'work', 'site');
  mkdirSync(cwd);
  const guest = tl.conversation('guest', { cwd });
  const isHeld =
    "SELECT 1 FROM leases l JOIN conversations c ON c.no = l.conv WHERE c.key = 'guest' AND l.worker IS NOT NULL";
  const untilNotHeld = () => until('nobody holds the conversation guest', () => home.query(isHeld).length === 0);
  await guest.ask('Hello.');
  await untilNotHeld();
  await refusedWith('refused', website.remove(), /directory of the conversation guest is inside the sandbox/);
  const { turn } = await tl.engine.submit((await guest.get()).id, '/hang');
  await event(tl.engine, 'guest', 'turn.sent', { turn: turn.id });
  await refusedWith('conflict', website.remove({ force: true }), /the conversation guest works in a directory of it/);
  await tl.engine.cancel(turn.id);
  await tl.as('bob').conversation('guest', { cwd }).ask('Hello.');
  await untilNotHeld();
  await refusedWith('refused', website.remove({ force: true }), /directory of a conversation of another owner/);
  expect(existsSync(cwd)).toBe(true);
});

test('a sandbox is removed if it has no unsaved work, or by force; the conversation continues in a new one', async () => {
  await using home = new Home();
  const tl = await home.open();
  const chat = tl.conversation('chat', { sandbox: 'website' });
  const website = tl.sandbox('website');
  await chat.ask('The codeword is heron.');
  const { id } = (await website.show()).sandbox;
  await website.exec(['/bin/sh', '-c', 'echo x > note.txt']);
  await refusedWith('refused', website.remove(), /note.txt is in no git repository/);
  const git = 'git -c user.name=a -c user.email=a@example.org';
  await website.exec([
    '/bin/sh',
    '-c',
    `git init -q --bare ../remote; git init -q .; ${git} add .; ${git} commit -qm one`,
  ]);
  await refusedWith('refused', website.remove(), /were not pushed/);
  const push = (name: string, url: string) =>
    website.exec(['/bin/sh', '-c', `git remote add ${name} '${url}' && git push -q ${name} HEAD`]);
  // This remote is inside the sandbox, and would be removed with it.
  for (const [name, url] of Object.entries({ near: '../remote', again: `file://${home.sandboxes}/${id}/remote` })) {
    expect(await push(name, url)).toMatchObject({ code: 0 });
    await refusedWith('refused', website.remove(), /were not pushed/);
  }
  execFileSync('git', ['init', '-q', '--bare', join(home.path, 'remote')]);
  expect(await push('origin', join(home.path, 'remote'))).toMatchObject({ code: 0 });
  // A remote that no longer exists does not count.
  renameSync(join(home.path, 'remote'), join(home.path, 'elsewhere'));
  await refusedWith('refused', website.remove(), /were not pushed/);
  renameSync(join(home.path, 'elsewhere'), join(home.path, 'remote'));
  await website.exec(['/bin/sh', '-c', 'echo y >> note.txt']);
  await refusedWith('refused', website.remove(), /not committed/);
  await website.exec(['git', 'checkout', '-q', '.']);
  expect(await website.remove()).toEqual({ sandboxId: id });
  expect(existsSync(join(home.sandboxes, id))).toBe(false);
  expect((await website.show()).sandbox).toMatchObject({ id, state: 'new', disk: null });
  expect((await chat.ask(WHICH_CODEWORDS)).reply).toContain('heron');
  await website.exec(['/bin/sh', '-c', 'echo x > note.txt']);
  await website.remove({ force: true });
  const kinds = (await allEvents(tl.engine, 'chat'))
    .map(({ kind }) => kind)
    .filter((kind) => kind.startsWith('sandbox.'));
  expect(kinds).toEqual(['sandbox.created', 'sandbox.destroyed', 'sandbox.created', 'sandbox.destroyed']);
});

test('a sandbox is not removed while commits of a submodule are not pushed', async () => {
  await using home = new Home();
  const tl = await home.open();
  await tl.conversation('chat', { sandbox: 'website' }).ask('Hello.');
  const website = tl.sandbox('website');
  const remotes = join(home.path, 'remotes');
  mkdirSync(remotes);
  const sh = async (script: string) => {
    const git = 'git() { command git -c user.name=a -c user.email=a -c protocol.file.allow=always "$@"; }';
    expect(await website.exec(['/bin/sh', '-ec', `${git}\n${script}`])).toMatchObject({ code: 0 });
  };
  await sh(`cd '${remotes}'; for name in top part; do git init -q --bare $name; done
    git clone -q part copy 2>&1; cd copy; git commit -q --allow-empty -m one; git push -q origin HEAD 2>&1`);
  await sh(`git clone -q '${remotes}/top' top 2>&1; cd top; git submodule --quiet add '${remotes}/part' part 2>&1
    git commit -qm one; git push -q origin HEAD 2>&1; cd part; git commit -q --allow-empty -m two; cd ..
    git commit -qam two; git push -q origin HEAD 2>&1`);
  await refusedWith('refused', website.remove(), /commits in top\/part were not pushed/);
  // What is pushed to a repository in the sandbox would be removed with it.
  await sh(`git clone -q --bare '${remotes}/part' ../state/inside 2>&1; cd top/part; git remote add inside "$OLDPWD/../state/inside"
    git push -q inside HEAD 2>&1`);
  await refusedWith('refused', website.remove(), /commits in top\/part were not pushed/);
  await sh('cd top/part; git push -q origin HEAD 2>&1');
  await website.remove();
});

test('a server puts an unused sandbox to rest and removes it later, unless it has unsaved work', async () => {
  await using home = new Home();
  const sandbox = { restAfterSeconds: 1 };
  const tl = await home.open({ claims: 'all' }, home.with({ sandbox }));
  for (const name of ['full', 'empty']) await tl.conversation(name, { sandbox: name }).ask('The codeword is heron.');
  await tl.sandbox('full').exec(['/bin/sh', '-c', 'echo x > note.txt']);
  const stateOf = async (name: string) => (await tl.sandbox(name).show()).sandbox.state;
  await until('both rest', async () => (await stateOf('empty')) === 'resting' && (await stateOf('full')) === 'resting');
  await tl.close();

  const next = await home.open({ claims: 'all' }, home.with({ sandbox: { removeAfterSeconds: 1 } }));
  // The older sandbox, full, is checked first: when the other one is removed, it was already kept.
  const removed = await event(next.engine, 'empty', 'sandbox.destroyed');
  expect(removed.payload).toMatchObject({ reason: 'nobody has used it for 1 second' });
  const { id } = (await next.sandbox('full').show()).sandbox;
  expect(readFileSync(join(home.sandboxes, id, 'work', 'note.txt'), 'utf8')).toBe('x\n');
  expect((await next.conversation('empty').ask(WHICH_CODEWORDS)).reply).toContain('heron');
});

test('the sandbox of a worktree can be used and removed like any other, but not with uncommitted changes', async () => {
  await using home = new Home();
  const repository = join(home.path, 'repository');
  mkdirSync(repository);
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.org', '-C', repository, ...args]);
  git('init', '-q');
  writeFileSync(join(repository, 'one.txt'), 'one\n');
  git('add', '.');
  git('commit', '-qm', 'one');
  const tl = await home.open();
  const chat = tl.conversation('chat', { cwd: repository, worktree: true });
  await chat.ask('Hello.');
  const own = tl.sandbox((await chat.sandbox()).sandboxId);
  expect(await own.exec(['/bin/sh', '-c', 'cat one.txt; echo two > two.txt'])).toMatchObject({
    code: 0,
    stdout: 'one\n',
  });
  await refusedWith('refused', own.remove(), /commit/);
  await own.remove({ force: true });
  expect((await own.show()).sandbox.state).toBe('new');
});

function which(program: string): string {
  return execFileSync('/bin/sh', ['-c', `command -v ${program}`], { encoding: 'utf8' }).trim();
}
