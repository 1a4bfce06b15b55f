# SPDX-License-Identifier: Apache-2.0
# Compiler and linker settings shared by everything that is built here.

set(BULKHEAD_SANITIZE "" CACHE STRING "address (with undefined), thread, undefined, or nothing")
set_property(CACHE BULKHEAD_SANITIZE PROPERTY STRINGS "" address thread undefined)

# libFuzzer with clang; with gcc the engine of tests/fuzz, which is told of coverage too.
option(BULKHEAD_FUZZ "Fuzz targets look for new inputs; see docs/fuzzing.md" OFF)
if(BULKHEAD_FUZZ)
    set(BULKHEAD_SANITIZE address)
endif()

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    # Sanitizer builds keep their asserts; RelWithDebInfo defines NDEBUG.
    if(BULKHEAD_SANITIZE)
        set(CMAKE_BUILD_TYPE Debug CACHE STRING "Kind of build" FORCE)
    else()
        set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Kind of build" FORCE)
    endif()
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
# A build tree that was copied to another machine still finds its own library.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# For what is built here but is no part of what a sanitizer should look at: the test runner.
add_library(bulkhead_plain_flags INTERFACE)
target_include_directories(bulkhead_plain_flags INTERFACE
    "${CMAKE_CURRENT_SOURCE_DIR}/include" "${CMAKE_CURRENT_SOURCE_DIR}/src")
target_compile_definitions(bulkhead_plain_flags INTERFACE
    _GNU_SOURCE BULKHEAD_VERSION="${PROJECT_VERSION}")
target_compile_options(bulkhead_plain_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef)
# A warning of an unknown compiler is no reason for `pip install` to fail.
if(NOT SKBUILD)
    target_compile_options(bulkhead_plain_flags INTERFACE -Werror)
endif()

# For everything else.
add_library(bulkhead_flags INTERFACE)
target_link_libraries(bulkhead_flags INTERFACE bulkhead_plain_flags)

if(BULKHEAD_SANITIZE STREQUAL "address")
    set(bulkhead_sanitizers address,undefined)
elseif(BULKHEAD_SANITIZE MATCHES "^(thread|undefined)$")
    set(bulkhead_sanitizers ${BULKHEAD_SANITIZE})
elseif(BULKHEAD_SANITIZE)
    message(FATAL_ERROR "BULKHEAD_SANITIZE is '${BULKHEAD_SANITIZE}'.\n"
            "Fix: use address, thread, undefined, or leave it empty.")
endif()
if(BULKHEAD_SANITIZE)
    target_compile_options(bulkhead_flags INTERFACE
        -fsanitize=${bulkhead_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
    target_link_options(bulkhead_flags INTERFACE -fsanitize=${bulkhead_sanitizers})
endif()
if(BULKHEAD_FUZZ AND CMAKE_C_COMPILER_ID MATCHES "Clang")
    target_compile_options(bulkhead_flags INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(bulkhead_flags INTERFACE -fsanitize=fuzzer-no-link)
elseif(BULKHEAD_FUZZ)
    target_compile_options(bulkhead_flags INTERFACE -fsanitize-coverage=trace-pc)
endif()
