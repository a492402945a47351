// Changes of inputs that keep their form, so that the code behind the first checks is reached.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

using Random = std::minstd_rand;
using Octets = std::vector<uint8_t>;

constexpr size_t kHead = 24;  // bytes in front of an input that say how it is read

// A value of Thrift's compact protocol, whatever it means.
struct ThriftValue {
    uint8_t type = 0;
    int64_t number = 0;               // of integers and bools
    Octets bytes;                     // of binaries and doubles
    std::vector<int16_t> ids;         // of the fields of a struct
    std::vector<ThriftValue> inside;  // fields, or elements
    uint8_t element = 0;              // the type of the elements of a list
};

// Reads the struct at `at`, which moves behind it. False where there is none.
bool read_thrift(const Octets& from, size_t& at, ThriftValue& found);
void write_thrift(const ThriftValue& value, Octets& out);
void change_thrift(ThriftValue& value, Random& random);

// A struct behind the head; at times the head is changed.
size_t mutate_thrift(uint8_t* data, size_t size, size_t most, unsigned seed);
// Pages behind the head: sizes in page headers stay those of the bodies, and checksums right.
size_t mutate_pages(uint8_t* data, size_t size, size_t most, unsigned seed);

// Changes some bytes by libFuzzer's own means, which may make them longer.
void change_bytes(Octets& bytes, size_t room);
// Hands the result to libFuzzer.
size_t given_back(const Octets& made, uint8_t* data, size_t most);
