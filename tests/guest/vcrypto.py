#!/usr/bin/python3
"""vcrypto.py SOCKET [SPEC]: a small vhost-user virtio-crypto device (cbc(aes)) for UML's  virtio_uml.device=SOCKET:20

Test use only. Serves one guest on the Unix socket SOCKET, then exits. SPEC is a comma-separated list:
  delay=S     seconds that each request takes
  fail=N      every Nth request is answered with an error status
  wrong=N     every Nth request is answered with wrong data and a good status
  hang=N      request N and all later ones are never answered
  stats=FILE  write "requests N bytes N sessions N failed N wrong N hung N" to FILE at the end

What it speaks: the vhost-user protocol as far as Linux's arch/um/drivers/virtio_uml.c uses it, split virtqueues (with indirect
tables), and of virtio-crypto one data queue (0) and the control queue (1), sessions of the cipher service with AES-CBC.
"""
import mmap
import os
import selectors
import socket
import struct
import sys
import time

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

OK, ERR, NOTSUPP, INVSESS = 0, 1, 3, 4  # VIRTIO_CRYPTO_*
DATA_QUEUE, CONTROL_QUEUE = 0, 1
CREATE_SESSION, DESTROY_SESSION, AES_CBC = 2, 3, 3

# struct virtio_crypto_config: ready, 1 data queue, services: cipher, cipher algorithms: AES-CBC, longest key 32, 1 MiB a request
CONFIG = struct.pack('<12IQ', 1, 1, 1 << 0, 1 << AES_CBC, 0, 0, 0, 0, 0, 32, 64, 0, 1 << 20)

F_VERSION_1, F_PROTOCOL, F_INDIRECT = 1 << 32, 1 << 30, 1 << 28
# CONFIG, and SLAVE_REQ because UML before 7 gets its interrupt number only with it
PROTOCOL_FEATURES = 1 << 9 | 1 << 5
DESC_NEXT, DESC_WRITE, DESC_INDIRECT = 1, 2, 4


class Memory:
    """The guest's memory: regions (guest address, size, mapping, offset in the mapping)."""

    def __init__(self):
        self.regions = []

    def at(self, address):
        for guest, size, mapping, offset in self.regions:
            if guest <= address < guest + size:
                return mapping, address - guest + offset
        raise ValueError('bad guest address %#x' % address)

    def read(self, address, n):
        m, o = self.at(address)
        return m[o:o + n]

    def write(self, address, data):
        m, o = self.at(address)
        m[o:o + len(data)] = data

    def u16(self, address):
        return struct.unpack('<H', self.read(address, 2))[0]


class Crypto:
    """The virtio-crypto device proper: request bytes in, answer bytes out."""

    def __init__(self, spec):
        self.sessions, self.last_session = {}, 0
        self.stats = dict(requests=0, bytes=0, sessions=0, failed=0, wrong=0, hung=0)
        self.delay, self.fail, self.wrong, self.hang, self.file = 0.0, 0, 0, 0, None
        for item in filter(None, spec.split(',')):
            key, _, value = item.partition('=')
            if key == 'delay':
                self.delay = float(value)
            elif key in ('fail', 'wrong', 'hang'):
                setattr(self, key, int(value))
            elif key == 'stats':
                self.file = os.open(value, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            else:
                raise SystemExit('unknown device setting %r' % item)

    def control(self, req):
        opcode = struct.unpack_from('<I', req)[0]
        if opcode == CREATE_SESSION:
            algorithm, key_length = struct.unpack_from('<II', req, 16)
            if algorithm != AES_CBC:
                return struct.pack('<QII', 0, NOTSUPP, 0)
            self.last_session += 1
            self.stats['sessions'] += 1
            self.sessions[self.last_session] = req[72:72 + key_length]
            return struct.pack('<QII', self.last_session, OK, 0)
        if opcode == DESTROY_SESSION:
            known = self.sessions.pop(struct.unpack_from('<Q', req, 16)[0], None)
            return bytes([OK if known is not None else INVSESS])
        return bytes([NOTSUPP])

    def data(self, req):
        """(data, status), or None: no answer."""
        opcode, _, session = struct.unpack_from('<IIQ', req)
        iv_length, length = struct.unpack_from('<II', req, 24)
        iv, text = req[72:72 + iv_length], req[72 + iv_length:72 + iv_length + length]
        self.stats['requests'] += 1
        self.stats['bytes'] += length
        n = self.stats['requests']
        if self.delay:
            time.sleep(self.delay)
        if self.hang and n >= self.hang:
            self.stats['hung'] += 1
            return None
        if self.fail and n % self.fail == 0:
            self.stats['failed'] += 1
            return b'', ERR
        if session not in self.sessions:
            return b'', INVSESS
        cipher = Cipher(algorithms.AES(self.sessions[session]), modes.CBC(iv))
        cipher = cipher.encryptor() if opcode == 0 else cipher.decryptor()
        text = bytearray(cipher.update(text) + cipher.finalize())
        if self.wrong and n % self.wrong == 0 and text:
            self.stats['wrong'] += 1
            text[len(text) // 2] ^= 0x55
        return bytes(text), OK

    def finish(self):
        if self.file is not None:
            os.write(self.file, (' '.join('%s %d' % i for i in self.stats.items()) + '\n').encode())


class Backend:
    def __init__(self, connection, crypto):
        self.c, self.crypto, self.mem, self.queues = connection, crypto, Memory(), {}
        self.sel = selectors.DefaultSelector()
        self.sel.register(connection, selectors.EVENT_READ, None)

    def serve(self):
        while True:
            for key, _ in self.sel.select():
                if key.data is not None:
                    self.kicked(key.data)
                elif not self.message():
                    return

    # ---- virtqueues

    def chain(self, queue, head):
        """The buffers of one request: [(address, length)] to read and to write."""
        out, ins, table, d = [], [], queue['desc'], head
        while True:
            address, n, flags, following = struct.unpack('<QIHH', self.mem.read(table + 16 * d, 16))
            if flags & DESC_INDIRECT:
                table, d = address, 0
                continue
            (ins if flags & DESC_WRITE else out).append((address, n))
            if not flags & DESC_NEXT:
                return out, ins
            d = following

    def kicked(self, index):
        q = self.queues[index]
        os.read(q['kick'], 8)
        while self.mem.u16(q['avail'] + 2) != q['last']:
            head = self.mem.u16(q['avail'] + 4 + 2 * (q['last'] % q['num']))
            q['last'] = (q['last'] + 1) & 0xffff
            out, ins = self.chain(q, head)
            written = self.request(index, b''.join(self.mem.read(a, n) for a, n in out), ins)
            if written is None:
                continue
            used = self.mem.u16(q['used'] + 2)
            self.mem.write(q['used'] + 4 + 8 * (used % q['num']), struct.pack('<II', head, written))
            self.mem.write(q['used'] + 2, struct.pack('<H', (used + 1) & 0xffff))
            os.write(q['call'], struct.pack('<Q', 1))

    def request(self, index, req, ins):
        status = None
        if index == CONTROL_QUEUE:
            data = self.crypto.control(req)
        else:
            answer = self.crypto.data(req)
            if answer is None:
                return None
            data, status = answer
        # Linux hands over each element of a scatter list together with all that follow it: of n elements it makes
        # n(n+1)/2 descriptors. The first n are the right ones; the status byte is the very last.
        w = 0
        for address, n in ins:
            part = data[w:w + n]
            if part:
                self.mem.write(address, part)
            w += len(part)
        if status is not None:
            address, n = ins[-1]
            self.mem.write(address + n - 1, bytes([status]))
        return w

    # ---- vhost-user messages

    def message(self):
        head, fds, _, _ = socket.recv_fds(self.c, 12, 8)
        if len(head) < 12:
            return False
        request, _, size = struct.unpack('<III', head)
        body, fds = b'', list(fds)
        while len(body) < size:
            part, more, _, _ = socket.recv_fds(self.c, size - len(body), 8)
            if not part:
                return False
            body += part
            fds += more

        def reply(data):
            self.c.sendall(struct.pack('<III', request, 5, len(data)) + data)

        def queue(i):
            return self.queues.setdefault(i, dict(last=0))

        if request == 1:  # GET_FEATURES
            reply(struct.pack('<Q', F_VERSION_1 | F_PROTOCOL | F_INDIRECT))
        elif request == 15:  # GET_PROTOCOL_FEATURES
            reply(struct.pack('<Q', PROTOCOL_FEATURES))
        elif request == 24:  # GET_CONFIG
            offset, n, _ = struct.unpack_from('<III', body)
            reply(body[:12] + CONFIG[offset:offset + n].ljust(n, b'\0'))
        elif request == 5:  # SET_MEM_TABLE
            self.mem.regions.clear()
            for i in range(struct.unpack_from('<I', body)[0]):
                guest, n, _, offset = struct.unpack_from('<QQQQ', body, 8 + 32 * i)
                self.mem.regions.append((guest, n, mmap.mmap(fds[i], n + offset), offset))
                os.close(fds[i])
        elif request == 8:  # SET_VRING_NUM
            i, n = struct.unpack('<II', body)
            queue(i)['num'] = n
        elif request == 10:  # SET_VRING_BASE
            i, n = struct.unpack('<II', body)
            queue(i)['last'] = n
        elif request == 9:  # SET_VRING_ADDR
            i, _, desc, used, avail, _ = struct.unpack('<IIQQQQ', body)
            queue(i).update(desc=desc, used=used, avail=avail)
        elif request == 12:  # SET_VRING_KICK
            i = struct.unpack('<Q', body)[0] & 255
            queue(i)['kick'] = fds[0]
            self.sel.register(fds[0], selectors.EVENT_READ, i)
        elif request == 13:  # SET_VRING_CALL
            queue(struct.unpack('<Q', body)[0] & 255)['call'] = fds[0]
        elif request == 11:  # GET_VRING_BASE
            i = struct.unpack('<II', body)[0]
            reply(struct.pack('<II', i, queue(i)['last']))
        return True  # all others need no answer


def main():
    crypto = Crypto(sys.argv[2] if len(sys.argv) > 2 else '')
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(1)
    connection, _ = listener.accept()
    os.unlink(sys.argv[1])
    try:
        Backend(connection, crypto).serve()
    except ConnectionResetError:
        pass
    finally:
        crypto.finish()


if __name__ == '__main__':
    main()
