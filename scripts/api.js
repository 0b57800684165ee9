// `npm run api`: writes docs/api.txt, the public API of the package as text. It lists what the entries of package.json's `exports` export,
// and every declaration that can be reached from there, without comments. Reviewers see a change of the API as a change of that file.
// A test compares the two (test/package/api.test.ts).
//
// tsc emits the declarations. The parser of TypeScript 5.9 reads them, because TypeScript 7 has no API for that yet.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { entriesOf } from './manifest.js';

/** A node of the syntax tree, or the parser. `any`, because the parser and its types may not be installed. @typedef {any} Syntax */
/** @typedef {{ file: string, name: string, text: string, needs: Set<string> }} Declared */

const at = (/** @type {string} */ path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
export const FILE = at('docs/api.txt');
const PARSER = at('test/package/node_modules/typescript/lib/typescript.js');

/** Null: TypeScript 5.9 is not installed. */
export function surface() {
  if (!existsSync(PARSER)) return null;
  const folder = mkdtempSync(join(tmpdir(), 'throughline-api-'));
  try {
    declare(folder);
    return written(new Surface(folder, createRequire(import.meta.url)(PARSER)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
function declare(folder) {
  // `--noCheck` halves the time. `npm run typecheck` checks the sources.
  const options = ['--removeComments', '--noCheck', '--singleThreaded'];
  const args = ['-p', at('tsconfig.build.json'), '--outDir', folder, ...options];
  const { status, stdout } = spawnSync(process.execPath, [at('node_modules/typescript/bin/tsc'), ...args], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`tsc failed:\n${stdout}`);
}

/** @param {Surface} all */
function written(all) {
  const { exports } = JSON.parse(readFileSync(at('package.json'), 'utf8'));
  const lines = [
    'The public surface of the package, written by "npm run api". The declarations of all names follow the names.',
    '',
  ];
  for (const [name, source] of Object.entries(entriesOf({ exports }))) {
    lines.push(name === 'index' ? 'throughline' : `throughline/${name}`);
    for (const [exported, declared] of [...all.exportsOf(source)].sort(byFirst)) {
      lines.push(exported === declared.name ? `  ${exported}` : `  ${exported}, declared as ${declared.name}`);
    }
    lines.push('');
  }
  const declarations = all.reached();
  const isAmbiguous = (/** @type {Declared} */ { name, file }) =>
    declarations.some((other) => other.name === name && other.file !== file);
  for (const declared of declarations) {
    if (isAmbiguous(declared)) lines.push(`// ${declared.file}`);
    lines.push(declared.text, '');
  }
  return lines.join('\n');
}

/**
 * @param {readonly [string, unknown]} a
 * @param {readonly [string, unknown]} b
 */
function byFirst([a], [b]) {
  return a < b ? -1 : 1;
}

/** The declarations of all files. A file is parsed when it is first needed. */
class Surface {
  #folder;
  #ts;
  /** @type {Map<string, Map<string, Declared>>} by file, by name in that file */
  #files = new Map();
  /** @type {Map<string, Syntax>} */
  #parsed = new Map();
  /** @type {Set<Declared>} */
  #reached = new Set();

  /**
   * @param {string} folder
   * @param {Syntax} parser
   */
  constructor(folder, parser) {
    this.#folder = folder;
    this.#ts = parser;
  }

  /** @param {string} source @returns {Map<string, Declared>} */
  exportsOf(source) {
    const file = join(this.#folder, source.replace(/^src\/(.*)ts$/, '$1d.ts'));
    /** @type {Map<string, Declared>} */
    const found = new Map();
    for (const [exported, declared] of this.#exported(file)) {
      found.set(exported, declared);
      this.#reach(declared);
    }
    return found;
  }

  /** @returns {Declared[]} by name */
  reached() {
    return [...this.#reached].sort((a, b) => byFirst([a.name, 0], [b.name, 0]) || byFirst([a.file, 0], [b.file, 0]));
  }

  /** @param {Declared} declared */
  #reach(declared) {
    if (this.#reached.has(declared)) return;
    this.#reached.add(declared);
    for (const name of declared.needs) {
      const other = this.#names(join(this.#folder, declared.file)).get(name);
      if (other !== undefined) this.#reach(other);
    }
  }

  /** What a file declares, or imports from our other files, by its name in that file. @param {string} file */
  #names(file) {
    const known = this.#files.get(file);
    if (known !== undefined) return known;
    /** @type {Map<string, Declared>} */
    const names = new Map();
    this.#files.set(file, names);
    for (const statement of this.#parse(file).statements) {
      for (const [name, declared] of this.#declaredBy(statement, file)) {
        const before = names.get(name);
        if (before?.file === declared.file) merge(before, declared);
        else names.set(name, declared);
      }
    }
    return names;
  }

  /** @param {string} file */
  #parse(file) {
    const known = this.#parsed.get(file);
    if (known !== undefined) return known;
    const parsed = this.#ts.createSourceFile(file, readFileSync(file, 'utf8'), this.#ts.ScriptTarget.Latest, true);
    this.#parsed.set(file, parsed);
    return parsed;
  }

  /**
   * @param {Syntax} statement
   * @param {string} file
   * @returns {Iterable<[string, Declared]>}
   */
  *#declaredBy(statement, file) {
    const { isImportDeclaration, isNamedImports, isVariableStatement, isIdentifier } = this.#ts;
    if (isImportDeclaration(statement)) {
      const bindings = statement.importClause?.namedBindings;
      const from = this.#resolved(statement.moduleSpecifier, file);
      if (from === null || bindings === undefined || !isNamedImports(bindings)) return;
      for (const { name, propertyName } of bindings.elements) {
        const declared = this.#exported(from).get((propertyName ?? name).text);
        if (declared !== undefined) yield [name.text, declared];
      }
    } else if (isVariableStatement(statement)) {
      for (const { name } of statement.declarationList.declarations) {
        if (isIdentifier(name)) yield [name.text, this.#declaration(statement, name.text, file)];
      }
    } else {
      const name = statement.name;
      if (name !== undefined && isIdentifier(name)) yield [name.text, this.#declaration(statement, name.text, file)];
    }
  }

  /**
   * @param {Syntax} statement
   * @param {string} name
   * @param {string} file
   * @returns {Declared}
   */
  #declaration(statement, name, file) {
    /** @type {Set<string>} */
    const needs = new Set();
    const visit = (/** @type {Syntax} */ node) => {
      const isName = node.parent.name === node;
      if (this.#ts.isIdentifier(node) && !isName) needs.add(node.text);
      this.#ts.forEachChild(node, visit);
    };
    visit(statement);
    needs.delete(name);
    const text = statement
      .getText()
      .replace(/^export (declare )?/, '')
      .replace(/^declare /, '');
    return { file: relative(this.#folder, file), name, text, needs };
  }

  /** @param {string} file @returns {Map<string, Declared>} by exported name */
  #exported(file) {
    /** @type {Map<string, Declared>} */
    const found = new Map();
    const { isExportDeclaration, isNamedExports, canHaveModifiers, getModifiers, SyntaxKind } = this.#ts;
    for (const statement of this.#parse(file).statements) {
      if (isExportDeclaration(statement)) {
        const from = statement.moduleSpecifier === undefined ? null : this.#resolved(statement.moduleSpecifier, file);
        const names = from === null ? this.#names(file) : this.#exported(from);
        if (statement.exportClause === undefined) for (const [name, declared] of names) found.set(name, declared);
        else if (isNamedExports(statement.exportClause)) {
          for (const { name, propertyName } of statement.exportClause.elements) {
            const declared = names.get((propertyName ?? name).text);
            if (declared !== undefined) found.set(name.text, declared);
          }
        }
      } else if (
        canHaveModifiers(statement) &&
        getModifiers(statement)?.some((/** @type {Syntax} */ { kind }) => kind === SyntaxKind.ExportKeyword)
      ) {
        for (const [name] of this.#declaredBy(statement, file)) {
          const declared = this.#names(file).get(name);
          if (declared !== undefined) found.set(name, declared);
        }
      }
    }
    return found;
  }

  /** The file of an imported module. Null: it belongs to a package. @param {Syntax} specifier @param {string} file */
  #resolved(specifier, file) {
    const { text } = specifier;
    return text.startsWith('.') ? resolve(dirname(file), text.replace(/\.ts$/, '.d.ts')) : null;
  }
}

/** For overloads, and for a type and a value of the same name. @param {Declared} first @param {Declared} second */
function merge(first, second) {
  first.text += `\n${second.text}`;
  for (const name of second.needs) first.needs.add(name);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = surface();
  if (text === null) throw new Error('TypeScript 5.9 is missing: run "node scripts/setup.js test/package".');
  writeFileSync(FILE, text);
}
