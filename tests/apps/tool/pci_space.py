"""A device's configuration space as bytes, made and changed register by register."""
import struct

EXPRESS = 0x40  # offset of the PCI Express capability
AER = 0x100


def mps_code(payload):
    return payload.bit_length() - 8


def space(vendor, device, *, command=0x406, port=False, speed=(3, 3), width=(8, 8), payload=256, payload_max=512,
          request=512, aspm=0, aer=True, errors=0, relaxed=True):
    """speed and width: (actual, maximum). payload: largest, as configured; payload_max: as the device supports."""
    data = bytearray(4096)
    struct.pack_into("<HHHHI", data, 0, vendor, device, command, 0x0010, 0x06040001 if port else 0x02800001)
    data[0x0E] = 1 if port else 0
    if not port:
        struct.pack_into("<HH", data, 0x2C, 0x10EE, 0x5249)
    data[0x34] = EXPRESS
    data[EXPRESS], data[EXPRESS + 1] = 0x10, 0
    struct.pack_into("<H", data, EXPRESS + 2, 0x42 if port else 0x02)
    struct.pack_into("<I", data, EXPRESS + 4, mps_code(payload_max) | (0 if port else 1 << 28))
    control = mps_code(payload) << 5 | mps_code(request) << 12 | (0x10 if relaxed else 0)
    struct.pack_into("<HH", data, EXPRESS + 8, control, 0)
    struct.pack_into("<I", data, EXPRESS + 12, speed[1] | width[1] << 4)
    struct.pack_into("<HH", data, EXPRESS + 16, aspm, speed[0] | width[0] << 4)
    if aer:
        struct.pack_into("<I", data, AER, 0x0001 | 1 << 16)
        struct.pack_into("<I", data, AER + 4, errors)
    return bytes(data)


def set_link(data, speed, width):
    """Returns a copy of a configuration space whose link has trained to that speed and width."""
    data = bytearray(data)
    struct.pack_into("<H", data, EXPRESS + 18, speed | width << 4)
    return bytes(data)


def word(data, offset):
    return struct.unpack_from("<H", data, offset)[0]


def long(data, offset):
    return struct.unpack_from("<I", data, offset)[0]
