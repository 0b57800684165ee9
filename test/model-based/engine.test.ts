import { test } from 'vitest';
import { anyCommand, anySetup, showCommand } from './engine/commands.ts';
import { playOnStore } from './engine/play.ts';
import { checkSequences } from './sequences.ts';

const play = playOnStore();

test('the promises are kept, whatever is killed, continues, fails or interferes, in any order', {
  timeout: 3_600_000,
}, async () => {
  await checkSequences({
    name: 'engine',
    runs: 200,
    setup: anySetup,
    command: anyCommand,
    longest: 18,
    show: showCommand,
    run: (commands, note, setup) => play(setup, commands, note),
  });
});
