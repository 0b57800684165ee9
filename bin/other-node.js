// Runs this very command with the npm package "node" that is installed beside Throughline, in place of a Node that is too old.
// Plain JavaScript that Node 20 can read.
const { spawn } = require('node:child_process');
const { readFileSync, realpathSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { isNewEnough } = require('./versions.js');

exports.goOver = goOver;

/** False: there is none. */
function goOver() {
  const program = newerNode();
  if (program === null) return false;
  const args = [...process.execArgv, ...process.argv.slice(1)];
  // @ts-ignore since 22.15, and not on Windows
  if (process.execve && process.platform !== 'win32') process.execve(program, [program, ...args], process.env);
  runAs(program, args);
  return true;
}

/** Found as Node finds packages for our own code, never in the working directory: that is not trusted to bring programs. */
function newerNode() {
  try {
    const manifest = require.resolve('node/package.json');
    const { version } = JSON.parse(readFileSync(manifest, 'utf8'));
    // Missing if npm was told to run no scripts.
    const program = realpathSync(join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node'));
    return isNewEnough(version) && program !== realpathSync(process.execPath) ? program : null;
  } catch {
    return null;
  }
}

/**
 * A child with our terminal and files, whose end becomes ours.
 * @param {string} program
 * @param {readonly string[]} args
 */
function runAs(program, args) {
  const child = spawn(program, args, { stdio: 'inherit' });
  // Whoever sends one of these means the child. What a terminal sends, the child gets itself, and twice would be another meaning.
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGUSR2'])) {
    process.on(signal, () => {
      if (!isFromTerminal(signal)) child.kill(signal);
    });
  }
  child.on('error', (error) => {
    console.error(`throughline: Cannot start ${program}: ${error.message}.`);
    process.exitCode = 3;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exitCode = code ?? 1;
      return process.exit();
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** @param {NodeJS.Signals} signal */
function isFromTerminal(signal) {
  return (signal === 'SIGINT' || signal === 'SIGQUIT') && isInForeground();
}

/** Whether we are what a terminal runs right now: only then does it send signals to us, and to the child as well. */
function isInForeground() {
  try {
    // pid (name) state ppid pgrp session tty_nr tpgid
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    return group === foreground;
  } catch {
    return process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY; // no /proc: macOS
  }
}
