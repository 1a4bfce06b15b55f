#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the simulator see? Builds the library or the worker with one mistake after another and demands
that a scenario which is fine without it fails.

usage: mutants.py BUILD [--short] [--seconds S] [NAME...]"""
import json
import os
import re
import shlex
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
SOURCE = os.path.realpath(os.path.join(HERE, '..', '..', '..', 'src'))

# The watchdog tells whoever a worker forgot to tell. Where the mistake is to forget, it must not.
NOBODY_ROUSES = ('client/workers/watchdog.c', re.compile(r'if \(sleepers\) bh__area_wake.*?\n.*?bh__dispatcher_poke\(device\);'),
                 '(void)sleepers, (void)callbacks;')

# Name, file, the text, what it becomes, scenario and strategy, whether it is in the short list, other
# changes that it needs.
MUTANTS = [
    ('asleep-release', 'worker/lane/lane.c', 'atomic_store(&lane->area->asleep, 1);',
     'atomic_store_explicit(&lane->area->asleep, 1, memory_order_release);', 'steady', True),
    ('done-release', 'worker/lane/lane_direct.c', 'atomic_store(&lane->area->done, done);\n    bh__worker',
     'atomic_store_explicit(&lane->area->done, done, memory_order_release);\n    bh__worker', 'steady', True,
     NOBODY_ROUSES),
    ('tail-release', 'client/queue/submit.c', 'atomic_store(&front->tail, tail);',
     'atomic_store_explicit(&front->tail, tail, memory_order_release);', 'steady sticky=16 tso=16', False),
    ('done-after-the-look', 'worker/lane/lane_direct.c',
     'atomic_store(&lane->area->done, done);\n    bh__worker_lane_notify(lane, done, &lane->woken_dispatch);',
     'bh__worker_lane_notify(lane, done, &lane->woken_dispatch);\n    atomic_store(&lane->area->done, done);',
     'steady', False, NOBODY_ROUSES),
    ('no-look-before-sleep', 'worker/lane/lane.c',
     'if (atomic_load(&lane->front->tail) == position && !bh__worker_is_killed(worker) &&',
     'if (!bh__worker_is_killed(worker) &&', 'steady', False),
    ('lock-forgets-sleepers', 'base/lock.c', 'bh__futex_wait(&lock->word, 2, BH__NEVER, BH__FUTEX_PRIVATE);\n}',
     'bh__futex_wait(&lock->word, 2, BH__NEVER, BH__FUTEX_PRIVATE);\n    atomic_store(&lock->word, 1);\n}',
     'crowd sticky=4', True),
    ('no-wait-for-lanes', 'worker/lane/lane_direct.c', '!wait_for_dependencies(lane)',
     '(0 && !wait_for_dependencies(lane))', 'handover', True),
    ('no-wake-of-lanes', 'worker/lane/lane_direct.c', 'bh__worker_lane_wake_waiters(lane);', '', 'handover', False),
    ('no-follow', 'worker/lane/lane_queued.c', 'if (atomic_load(&other->area->done) >= on->position) continue;',
     'continue;', 'handover_queued', True),
    ('queued-without-wake', 'worker/lane/lane_queued.c', 'bh__worker_lane_wake_waiters(lane);', '',
     'handover_queued', False),
    ('no-hold', 'worker/lane/lane_direct.c', 'if (seen >= lane->hold) return true;', 'return true;', 'takeover', True),
    ('reaped-without-wake', 'client/workers/worker_life.c',
     re.compile(r'    bh__futex_wake\(\(_Atomic uint32_t \*\)\(void \*\)&device->queue\.front->reaped, BH__FUTEX_ALL,\s*'
                r'BH__FUTEX_SHARED\);'), '', 'takeover', False),
    ('write-before-readers', 'client/module/variable.c', '    wait_for_users(device, module);',
     '    if (0) wait_for_users(device, module);', 'global_order', False),
    ('write-before-sequences', 'client/sequence/replay.c', 'self->modules[i]->last[lane] = position;',
     '(void)self->modules[i];', 'global_order', False),
    ('write-remembered-early', 'client/module/variable.c',
     'device->module.variable_writes->position <= done', '(done || !done)', 'global_order', False),
    ('slot-while-in-use', 'client/transfer/staging.c', 'bh__lane_done(device, &device->lanes[slot->lane]) >= slot->sequence',
     'bh__lane_done(device, &device->lanes[slot->lane]) + 1 >= slot->sequence', 'transfers', True),
    ('report-not-waited-for', 'worker/report.c', 'if ((int32_t)(taken - number) >= 0) return true;', 'return true;',
     'refusals', True),
    ('cancelled-clears-doubt', 'client/queue/doubt.c', 'for (uint32_t i = 0; !shadow->resolved && i < shadow->use_count; i++)',
     'for (uint32_t i = 0; i < shadow->use_count; i++)', 'cancel_doubt', True),
    ('no-doubt', 'client/queue/resolve.c', 'if (use->access & BH_ACCESS_OUT)\n            bh__doubt_add',
     'if (0)\n            bh__doubt_add', 'swarm_kills', True),
    ('doubt-too-wide', 'client/queue/resolve.c', 'bh__doubt_add(device, use->memory, use->offset, use->bytes, shadow->stamp);',
     'bh__doubt_add(device, use->memory, 0, use->memory->bytes, shadow->stamp);', 'swarm_kills', False),
    ('doubt-of-earlier-readers', 'client/queue/doubt.c', 'if (doubt->stamp >= stamp) continue;', '', 'swarm_queued', False),
    ('lost-read-told-at-once', 'client/queue/resolve.c', 'use->memory->host && !use->memory->mirror) return true;',
     'use->memory->host && !use->memory->mirror) return false;', 'read_lost', False),
    ('after-ignored', 'client/queue/submit_options.c',
     'if (ticket.sequence > positions[index]) positions[index] = ticket.sequence;', '', 'swarm', False),
    ('stores-lost-after-a-cancel', 'client/managed/move.c',
     'if (self->to_write_back_count) return;\n', 'return;\n', 'swarm', True),
    ('told-before-the-write-back', 'client/managed/move.c',
     'if (write_back(device, self, &via, &position) == BH_OK) continue;',
     '(void)write_back(device, self, &via, &position); continue;', 'swarm', False),
    ('intact-bytes-left', 'client/managed/move.c', 'status = download_part(device, self, lane, begin, out_retry);',
     'status = BH_OK;', 'swarm_queued', False),
    ('intact-bytes-left-by-a-stop', 'client/managed/stopped.c', ': fetch_part(device, self, begin);', ': BH_OK;',
     'swarm_gives_up', False),
    ('closed-without-results', 'client/device/device.c', 'bh__managed_drain(device, lane, tail, deadline);', '',
     'managed_close', False),
    ('gaps-forgotten', 'client/managed/writers.c', 'if (reserve(self))', 'if (0)', 'managed_close_soon', True),
    ('prefetch-without-its-moves', 'client/managed/move.c', 'fail_prefetches(device, lane, shadow);', '',
     'managed_prefetch', False),
    ('version-in-use', 'client/sequence/replay.c', re.compile(r'if \(last > [^;]*\) return lane;'), '', 'swarm', False),
    ('watch-freed-while-told', 'client/callback/watchers.c',
     'run_wait(device, watcher->id);\n    pthread_mutex_unlock(&device->dispatch_lock);\n    bh__ticket_leave(device);',
     'pthread_mutex_unlock(&device->dispatch_lock);\n    bh__ticket_leave(device);', 'swarm_kills', False),
    ('descriptor-left', 'client/workers/worker_life.c', 'bh__fd_close(worker->canary_fd);', '', 'steady', True),
]


def compile_commands(build):
    with open(os.path.join(build, 'compile_commands.json')) as text:
        return json.load(text)


class Builder:
    def __init__(self, build):
        self.build = os.path.realpath(build)
        self.work = os.path.join(self.build, 'tests', 'mutants')
        os.makedirs(self.work, exist_ok=True)
        self.simulated, self.core = {}, []
        for entry in compile_commands(build):
            output = re.search(r' -o (\S+)', entry['command']).group(1)
            path = os.path.join(entry['directory'], output)
            if 'bulkhead_simulated.dir' in output:
                self.simulated[os.path.realpath(entry['file'])] = (entry, path)
            elif 'bulkhead-simulator.dir' in output:
                self.core.append(path)

    def compile(self, folder, file, change):
        """Returns the plain object and the changed one, or None where the text is not there, or not once."""
        path = os.path.join(SOURCE, file)
        if not os.path.exists(path):
            return None
        with open(path) as text:
            changed = change(text.read())
        if changed is None or path not in self.simulated:
            return None
        entry, plain = self.simulated[path]
        mutant = os.path.join(folder, os.path.basename(file))
        with open(mutant, 'w') as text:
            text.write(changed)
        words = shlex.split(entry['command'])
        words[words.index('-o') + 1] = mutant + '.o'
        words[words.index('-c') + 1] = mutant
        words += ['-I' + os.path.dirname(path), '-Wno-error', '-w']
        subprocess.check_call(words, cwd=entry['directory'])
        return plain, mutant + '.o'

    def make(self, name, edits):
        """Returns the program with these edits, or None where one of them is outdated."""
        folder = os.path.join(self.work, name)
        os.makedirs(folder, exist_ok=True)
        compiled = [self.compile(folder, file, changer(old, new)) for file, old, new in edits]
        if None in compiled:
            return None
        changed = dict(compiled)
        objects = [changed.get(o, o) for _, o in self.simulated.values()]
        joined, program = os.path.join(folder, 'simulated.o'), os.path.join(folder, 'simulator')
        subprocess.check_call([os.path.join(HERE, 'link.sh'), joined] + objects)
        subprocess.check_call(['gcc', '-no-pie', '-o', program] + self.core + [joined, '-lm', '-ldl', '-lpthread'])
        os.remove(joined)
        return program


def changer(old, new):
    def change(text):
        if isinstance(old, str):
            return text.replace(old, new) if text.count(old) == 1 else None
        return old.sub(lambda _: new, text) if len(old.findall(text)) == 1 else None
    return change


def main():
    arguments = sys.argv[1:]
    build = arguments.pop(0)
    short = '--short' in arguments
    seconds = arguments[arguments.index('--seconds') + 1] if '--seconds' in arguments else '30'
    names = [a for a in arguments if not a.startswith('--') and a != seconds]
    builder = Builder(build)
    missed, outdated, tried = [], [], 0
    for name, file, old, new, scenario, in_short, *others in MUTANTS:
        if (names and name not in names) or (short and not names and not in_short):
            continue
        program = builder.make(name, [(file, old, new), *others])
        if program is None:
            outdated.append(name)
            print(f'{name}: its text is not in src/{file} any more', flush=True)
            continue
        tried += 1
        run = subprocess.run([program, *scenario.split(), 'seeds=1000000', f'seconds={seconds}', 'until'],
                             capture_output=True, text=True)
        text = run.stdout.strip().split('\n')
        found = run.returncode == 1 and len(text) > 1
        after = re.search(r': (\d+) schedules', run.stdout)
        print(f'{name}: {"found" if found else "NOT FOUND"} by {scenario} after '
              f'{after.group(1) if after else "?"} schedules{": " + text[1].strip() if found else ""}', flush=True)
        if not found:
            missed.append(name)
        os.remove(program)
    print(f'{tried} tried, {len(missed)} not found, {len(outdated)} outdated')
    # A list that has lost touch with the sources proves nothing.
    return 1 if missed or tried <= len(outdated) else 0


if __name__ == '__main__':
    sys.exit(main())
