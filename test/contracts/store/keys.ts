import { expect, test } from 'vitest';
import type { NewKey, NewLink } from '../../../src/ports/store.ts';
import { ANN, BOB, codeOf, fresh, type World } from './world.ts';

export function keys(world: World): void {
  test('a key is found by its id alone, and has its owner and for whom it may act', async () => {
    const { store, site } = world;
    const made = newKey({ expiresAt: 9_000_000_000_000, scopes: ['read', 'act-as'], owners: 'app:*' });
    const created = await store.createKey(ANN, made);
    expect(created).toMatchObject({ ...made, owner: ANN, revokedAt: null });
    expect(await (await site.open()).findKey(made.id)).toEqual(created);
    expect(await store.findKey('another')).toBeNull();
    expect(await store.keys(ANN)).toEqual([created]);
    expect(await store.createKey(BOB, newKey())).toMatchObject({ owners: null });
  });

  test('each owner has a separate list, newest first', async () => {
    const { store } = world;
    const made = [newKey(), newKey(), newKey()];
    for (const [index, key] of made.entries()) await store.createKey(index === 1 ? BOB : ANN, key);
    expect((await store.keys(ANN)).map(({ id }) => id)).toEqual([made[2]?.id, made[0]?.id]);
    expect((await store.keys(BOB)).map(({ id }) => id)).toEqual([made[1]?.id]);
  });

  test('a revoked key keeps the time of its first revocation, and is still found', async () => {
    const { store } = world;
    const { id } = await store.createKey(ANN, newKey());
    const { revokedAt } = await store.revokeKey(ANN, id);
    expect(revokedAt).toEqual(expect.any(Number));
    expect((await store.revokeKey(ANN, id)).revokedAt).toBe(revokedAt);
    expect((await store.findKey(id))?.revokedAt).toBe(revokedAt);
    expect(await codeOf(store.revokeKey(ANN, 'another'))).toBe('not_found');
  });

  test('an id can be used once, also by different owners', async () => {
    const { store } = world;
    const made = newKey();
    await store.createKey(ANN, made);
    expect(await codeOf(store.createKey(BOB, made))).toBe('conflict');
    expect((await store.findKey(made.id))?.owner).toBe(ANN);
  });

  test('a one-time link can be used once, also by several processes at the same moment, and grants what it was made for', async () => {
    const { store, site } = world;
    const others = [store, await site.open(), await site.open()];
    const made = [newLink({ scopes: ['read', 'prompt'], grantEnds: 9_000_000_000_000 }), newLink(), newLink()];
    for (const link of made) await store.createLink(ANN, link);
    for (const { hash, scopes, grantEnds } of made) {
      const taken = await Promise.all([...others, ...others].map((each) => each.takeLink(hash)));
      const granted = taken.filter((grant) => grant !== null);
      expect(granted).toEqual([{ owner: ANN, scopes, expiresAt: grantEnds }]);
      expect(await store.takeLink(hash)).toBeNull();
    }
    expect(await store.takeLink('unknown')).toBeNull();
  });

  test('a link expires, and is deleted when the next one is created', async () => {
    const { store, site } = world;
    const [old, late, next] = [newLink(), newLink(), newLink()];
    const expires = await store.createLink(ANN, old);
    site.pass(1);
    expect(await store.createLink(BOB, late)).toBe(expires + 1);
    site.pass(old.validMs - 1);
    expect(await store.takeLink(old.hash)).toBeNull();
    expect(await store.takeLink(late.hash)).toMatchObject({ owner: BOB });
    await store.createLink(ANN, old);
    site.pass(old.validMs);
    await store.createLink(BOB, next);
    const kept = await site.contents();
    expect([kept.includes(old.hash), kept.includes(next.hash)]).toEqual([false, true]);
  });

  test('beyond the limit of links, the oldest of the owner are dropped; other owners keep theirs', async () => {
    const { store } = world;
    const of = (owner: string) => ({ owner, link: newLink({ most: 2 }) });
    const made = [of(BOB), of(ANN), of(ANN), of(ANN)];
    for (const { owner, link } of made) await store.createLink(owner, link);
    const taken = [];
    for (const { link } of made) taken.push((await store.takeLink(link.hash))?.owner ?? null);
    expect(taken).toEqual([BOB, null, ANN, ANN]);
  });
}

const newLink = (given: Partial<NewLink> = {}): NewLink => ({
  ...{ hash: fresh('hash'), scopes: ['read'], grantEnds: null, validMs: 900_000, most: 64, ...given },
});

export function newKey(given: Partial<NewKey> = {}): NewKey {
  return {
    id: fresh('key'),
    name: 'for tests',
    scopes: ['read'],
    owners: null,
    hash: 'ab12',
    expiresAt: null,
    ...given,
  };
}
