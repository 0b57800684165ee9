// A vitest reporter for scripts/test.js. vitest's own JSON report does not contain why a test was skipped.
import { writeFileSync } from 'node:fs';

/** @typedef {{ name: string, why: string }} Entry */
/** @typedef {{ passed: number, failed: Entry[], skipped: Entry[] }} Report */
/** @typedef {Report & { files: Record<string, import('./test-parts.js').FileRun> }} TestReport */

export default class TestReporter {
  /** With `-t`, vitest reports every test that does not match as skipped. Those are not counted. */
  filtered = false;
  /** When each file started. @type {Map<string, number>} */
  started = new Map();
  /** @type {Record<string, import('./test-parts.js').FileRun>} */
  files = {};

  /** @param {import('vitest/node').Vitest} vitest */
  onInit(vitest) {
    this.filtered = vitest.config.testNamePattern !== undefined;
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleQueued({ relativeModuleId }) {
    this.started.set(relativeModuleId, performance.now());
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    const to = performance.now();
    this.files[module.relativeModuleId] = {
      from: this.started.get(module.relativeModuleId) ?? to,
      to,
      seconds: module.diagnostic().duration / 1000,
      processor: module.meta().processorSeconds ?? 0,
      tests: [...module.children.allTests()].length,
    };
  }

  /**
   * @param {readonly import('vitest/node').TestModule[]} modules
   * @param {readonly import('vitest').SerializedError[]} unhandled
   */
  onTestRunEnd(modules, unhandled) {
    /** @type {TestReport} */
    const report = {
      files: this.files,
      passed: 0,
      failed: unhandled.map((error) => failure('outside of any test', [error])),
      skipped: [],
    };
    for (const module of modules) {
      const file = module.relativeModuleId;
      if (module.errors().length > 0) report.failed.push(failure(file, module.errors()));
      for (const suite of module.children.allSuites()) {
        if (suite.errors().length > 0) report.failed.push(failure(`${file} > ${suite.fullName}`, suite.errors()));
      }
      for (const test of module.children.allTests()) this.count(test, `${file} > ${test.fullName}`, report);
    }
    // Printed before vitest's own long report, because the end of a long log may be cut off.
    for (const { name, why } of report.failed) console.log(`failed: ${name}: ${why}`);
    writeFileSync(/** @type {string} */ (process.env.THROUGHLINE_TEST_REPORT), JSON.stringify(report));
  }

  /**
   * @param {import('vitest/node').TestCase} test
   * @param {string} name
   * @param {Report} report
   */
  count(test, name, report) {
    const result = test.result();
    if (result.state === 'passed') report.passed += 1;
    else if (result.state === 'failed') report.failed.push(failure(name, result.errors));
    else if (result.state === 'pending') report.failed.push({ name, why: 'never finished' });
    else if (result.note) report.skipped.push({ name, why: result.note });
    else if (!this.filtered) report.failed.push({ name, why: 'skipped without a reason' });
  }
}

/**
 * @param {string} name
 * @param {readonly { message?: string }[]} errors
 * @returns {Entry}
 */
function failure(name, errors) {
  return { name, why: errors[0]?.message?.split('\n')[0] ?? 'failed' };
}
