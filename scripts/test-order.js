import { BaseSequencer } from 'vitest/node';

/**
 * Without a record of earlier runs vitest starts the largest files first. The longest here are small: they run shared scenarios
 * with real agents. Started last, one of them would run alone for minutes, while the other cores have nothing to do.
 */
const LONGEST = [
  'test/faults/server/killed.test.ts',
  'test/agents/claude-sdk-scenarios.test.ts',
  'test/agents/claude-cli-scenarios.test.ts',
  'test/agents/acp-incomplete-loads.test.ts',
  'test/faults/storm/storm.test.ts',
  'test/agents/acp-killed.test.ts',
  'test/agents/acp-claude-scenarios.test.ts',
  'test/model-based/store.test.ts',
  'test/model-based/engine.test.ts',
];

/** The longest test files first, all others as vitest has them. */
export default class LongestFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    /** @param {import('vitest/node').TestSpecification} file */
    const rank = ({ moduleId }) => {
      const index = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return index < 0 ? LONGEST.length : index;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
