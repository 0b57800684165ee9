import { expect, test } from 'vitest';
import type { NewKey } from '../../../src/ports/store.ts';
import { ANN, BOB, codeOf, fresh, type World } from './world.ts';

export function keys(world: World): void {
  test('a key is found by its id alone, and says on whose behalf it acts', async () => {
    const { store, site } = world;
    const made = newKey({ expiresAt: 9_000_000_000_000, scopes: ['read', 'act-as'], owners: 'app:*' });
    const created = await store.createKey(ANN, made);
    expect(created).toMatchObject({ ...made, owner: ANN, revokedAt: null });
    expect(await (await site.open()).findKey(made.id)).toEqual(created);
    expect(await store.findKey('another')).toBeNull();
    expect(await store.keys(ANN)).toEqual([created]);
    expect(await store.createKey(BOB, newKey())).toMatchObject({ owners: null });
  });

  test('each owner has a list of their own, newest first', async () => {
    const { store } = world;
    const made = [newKey(), newKey(), newKey()];
    for (const [index, key] of made.entries()) await store.createKey(index === 1 ? BOB : ANN, key);
    expect((await store.keys(ANN)).map(({ id }) => id)).toEqual([made[2]?.id, made[0]?.id]);
    expect((await store.keys(BOB)).map(({ id }) => id)).toEqual([made[1]?.id]);
  });

  test('a revoked key stays revoked from the first time on, and is still found', async () => {
    const { store } = world;
    const { id } = await store.createKey(ANN, newKey());
    const { revokedAt } = await store.revokeKey(ANN, id);
    expect(revokedAt).toEqual(expect.any(Number));
    expect((await store.revokeKey(ANN, id)).revokedAt).toBe(revokedAt);
    expect((await store.findKey(id))?.revokedAt).toBe(revokedAt);
    expect(await codeOf(store.revokeKey(ANN, 'another'))).toBe('not_found');
  });

  test('an id is taken once, whoever has it', async () => {
    const { store } = world;
    const made = newKey();
    await store.createKey(ANN, made);
    expect(await codeOf(store.createKey(BOB, made))).toBe('conflict');
    expect((await store.findKey(made.id))?.owner).toBe(ANN);
  });
}

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
