// Reports every call of a function in src/ of a checkout, with the call that led to it. scripts/trace-prompt.js counts them.
import { AsyncLocalStorage } from 'node:async_hooks';
import { readFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'vite';

/** @typedef {{ file: string, name: string, line: number, lines: number }} Fn A function; `file` is relative to src/. */
/** @typedef {{ fn: Fn, parent: Call | undefined, at: number }} Call One call of it; `at` counts all calls. */
/** @typedef {{ type: string, start: number, end: number, [key: string]: unknown }} Node */

/** The call that the running code belongs to, also after an `await`. */
const current = /** @type {AsyncLocalStorage<Call>} */ (new AsyncLocalStorage());

/**
 * Instruments every function of the files in `src`. Call it before any of these files is imported.
 * @param {string} src
 * @param {(call: Call) => void} onCall Called for every call, before the first line of the function runs.
 */
export function traceFunctions(src, onCall) {
  /** @type {Fn[]} */
  const functions = [];
  let calls = 0;
  /** @param {number} index */
  const enter = (index) => {
    calls += 1;
    const call = { fn: /** @type {Fn} */ (functions[index]), parent: current.getStore(), at: calls };
    onCall(call);
    return call;
  };
  Object.assign(globalThis, {
    __trace: {
      enter,
      /** @type {(index: number, body: () => unknown) => unknown} */
      call: (index, body) => current.run(enter(index), body),
    },
  });
  registerHooks({
    load(url, context, nextLoad) {
      const path = url.startsWith('file:') ? fileURLToPath(url) : '';
      if (!path.startsWith(`${src}/`) || !path.endsWith('.ts')) return nextLoad(url, context);
      const source = traced(relative(src, path), readFileSync(path, 'utf8'), functions);
      return { format: 'module', source, shortCircuit: true };
    },
  });
}

/**
 * Every function of a file, in the order of their beginnings.
 * @param {string} file @param {string} typescript
 * @returns {Fn[]}
 */
export function functionsIn(file, typescript) {
  // Node cannot strip types from a file with JSX. The parser can read both.
  const source = file.endsWith('.tsx') ? typescript : stripTypeScriptTypes(typescript);
  return found(file, source).map(({ fn }) => fn);
}

/**
 * The file's JavaScript with the instrumentation. Its functions are added to `functions`.
 * @param {string} file @param {string} typescript @param {Fn[]} functions
 */
function traced(file, typescript, functions) {
  const source = stripTypeScriptTypes(typescript);
  /** @type {{ at: number, text: string }[]} */
  const notes = [];
  for (const { fn, node, isConstructor } of found(file, source)) {
    const index = functions.push(fn) - 1;
    const body = /** @type {Node} */ (node.body);
    const isBlock = body.type === 'BlockStatement';
    const isEmpty = isBlock && body.end === body.start + 2;
    if (node.generator || isConstructor || isEmpty) {
      notes.push({ at: body.start + 1, text: `__trace.enter(${index});` });
      continue;
    }
    const open = `__trace.call(${index}, ${node.async ? 'async ' : ''}() => `;
    if (isBlock) notes.push({ at: body.start + 1, text: `return ${open}{` });
    else notes.push({ at: body.start, text: `${open}(` });
    // If two functions end at the same place, the inner one must be closed first. It was found later.
    notes.unshift({ at: isBlock ? body.end - 1 : body.end, text: isBlock ? '});' : '))' });
  }
  let text = '';
  let from = 0;
  for (const note of notes.toSorted((a, b) => a.at - b.at)) {
    text += source.slice(from, note.at) + note.text;
    from = note.at;
  }
  return text + source.slice(from);
}

/**
 * @param {string} file @param {string} source
 * @returns {{ fn: Fn, node: Node, isConstructor: boolean }[]}
 */
function found(file, source) {
  const { program, errors } = parseSync(file.replace(/\.ts$/, '.js'), source);
  if (errors[0]) throw new SyntaxError(`${file}: ${errors[0].message}`);
  /** @type {{ fn: Fn, node: Node, isConstructor: boolean }[]} */
  const result = [];
  /** @param {unknown} value @param {Node | undefined} parent @param {string} within */
  const walk = (value, parent, within) => {
    if (Array.isArray(value)) {
      for (const each of value) walk(each, parent, within);
      return;
    }
    if (typeof value !== 'object' || value === null || !('type' in value)) return;
    const node = /** @type {Node} */ (value);
    let name = within;
    if (/^(Function|ArrowFunction)/.test(node.type) && node.body) {
      name = nameOf(node, parent) ?? `a function in ${within}`;
      const line = source.slice(0, node.start).split('\n').length;
      const lines = source.slice(node.start, node.end).split('\n').length;
      result.push({ fn: { file, name, line, lines }, node, isConstructor: parent?.kind === 'constructor' });
    }
    for (const [key, child] of Object.entries(node)) if (key !== 'parent') walk(child, node, name);
  };
  walk(program, undefined, 'the file');
  return result;
}

/** @param {Node} node @param {Node | undefined} parent @returns {string | undefined} */
function nameOf(node, parent) {
  const named = /** @type {{ name?: string } | null | undefined} */ (node.id ?? parent?.key ?? parent?.id);
  return named?.name;
}
