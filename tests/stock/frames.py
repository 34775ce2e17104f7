"""Builds and parses frames as bytes, and reads and writes pcap files. Standard library only."""
import struct

PCAP_MAGIC = 0xA1B2C3D4  # microseconds; libpcap writes in the host's byte order
ETHERNET = 1  # LINKTYPE_ETHERNET


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def ip(text):
    return bytes(int(part) for part in text.split("."))


def checksum(data):
    """The checksum of RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(dst, src, kind, payload):
    return mac(dst) + mac(src) + struct.pack("!H", kind) + payload


def ipv4(src, dst, protocol, payload):
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0, 64, protocol, 0) + ip(src) + ip(dst)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(src, dst, src_port, dst_port, payload):
    """The segment with its checksum for the IPv4 addresses src and dst."""
    head = struct.pack("!HHHH", src_port, dst_port, 8 + len(payload), 0)
    pseudo = ip(src) + ip(dst) + struct.pack("!BBH", 0, 17, 8 + len(payload))
    return head[:6] + struct.pack("!H", checksum(pseudo + head + payload) or 0xFFFF) + payload


def tcp(src, dst, src_port, dst_port, payload):
    head = struct.pack("!HHIIBBHHH", src_port, dst_port, 1000, 0, 0x50, 0x18, 4096, 0, 0)
    pseudo = ip(src) + ip(dst) + struct.pack("!BBH", 0, 6, 20 + len(payload))
    return head[:16] + struct.pack("!H", checksum(pseudo + head + payload)) + head[18:] + payload


def echo(kind, identifier, number, payload):
    """An ICMP echo message: kind 8 is a request, 0 a reply."""
    head = struct.pack("!BBHHH", kind, 0, 0, identifier, number)
    return head[:2] + struct.pack("!H", checksum(head + payload)) + head[4:] + payload


def arp(operation, sender_mac, sender_ip, target_mac, target_ip):
    return (struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + mac(sender_mac) + ip(sender_ip) + mac(target_mac) +
            ip(target_ip))


def with_bytes(frame, offset, new):
    return frame[:offset] + new + frame[offset + len(new):]


def write_pcap(path, frames):
    with open(path, "wb") as out:
        out.write(struct.pack("=IHHiIII", PCAP_MAGIC, 2, 4, 0, 0, 65535, ETHERNET))
        for number, frame in enumerate(frames):
            out.write(struct.pack("=IIII", number, 0, len(frame), len(frame)) + frame)


def read_pcap(path):
    """The frames of a file that libpcap or DPDK wrote; none may be truncated."""
    records = read_records(path)
    for kept, length in records:
        if len(kept) != length:
            raise AssertionError(f"{path}: {len(kept)} bytes of a frame of {length} were kept")
    return [kept for kept, _ in records]


def read_records(path):
    """[(bytes kept, length of the frame)] of a pcap or pcapng file, since DPDK writes either."""
    with open(path, "rb") as file:
        data = file.read()
    (magic,) = struct.unpack_from("=I", data)
    if magic == 0x0A0D0D0A:
        return list(read_blocks(data))
    if magic not in (PCAP_MAGIC, 0xA1B23C4D):
        raise AssertionError(f"{path}: no pcap file: {data[:24].hex()}")
    if struct.unpack_from("=I", data, 20)[0] != ETHERNET:
        raise AssertionError(f"{path}: not of Ethernet: {data[:24].hex()}")
    records, at = [], 24
    while at < len(data):
        kept, length = struct.unpack_from("=II", data, at + 8)
        if at + 16 + kept > len(data):
            raise AssertionError(f"{path}: the file ends within the record at {at}")
        records.append((data[at + 16:at + 16 + kept], length))
        at += 16 + kept
    return records


def read_blocks(data):
    """The packets of pcapng's enhanced packet blocks."""
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from("=II", data, at)
        if length < 12 or at + length > len(data):
            raise AssertionError(f"the pcapng block at {at} is cut")
        if kind == 6:
            kept, frame_length = struct.unpack_from("=II", data, at + 20)
            yield data[at + 28:at + 28 + kept], frame_length
        at += length
