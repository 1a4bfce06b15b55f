# SPDX-License-Identifier: Apache-2.0
# How components become libraries and programs.
#
# Every .c file in a component's directory, or one below, belongs to it. A file named main.c is the
# entry of a program and stays out of the component, so that tests can link the rest.

include(BulkheadSymbols)

# The object files of the components named, as one list in `out`.
function(bulkhead_objects out)
    set(objects "")
    foreach(name IN LISTS ARGN)
        if(TARGET bulkhead_${name})
            list(APPEND objects $<TARGET_OBJECTS:bulkhead_${name}>)
        endif()
    endforeach()
    set(${out} ${objects} PARENT_SCOPE)
endfunction()

# src/NAME as an object library; nothing if it has no sources.
function(bulkhead_component name)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.c"
         "${PROJECT_SOURCE_DIR}/src/${name}/*/*.c")
    list(FILTER sources EXCLUDE REGEX "/main\\.c$")
    if(sources)
        add_library(bulkhead_${name} OBJECT ${sources})
        target_link_libraries(bulkhead_${name} PRIVATE bulkhead_flags)
    endif()
endfunction()

# libbulkhead, shared and static, from components. It links libc and nothing else.
function(bulkhead_library)
    bulkhead_objects(objects ${ARGN})
    add_library(bulkhead_shared SHARED ${objects})
    add_library(bulkhead_static STATIC ${objects})
    add_library(Bulkhead::bulkhead ALIAS bulkhead_shared)
    add_library(Bulkhead::static ALIAS bulkhead_static)
    foreach(library bulkhead_shared bulkhead_static)
        set_target_properties(${library} PROPERTIES OUTPUT_NAME bulkhead LINKER_LANGUAGE C)
        target_include_directories(${library} INTERFACE
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    set_target_properties(bulkhead_shared PROPERTIES
        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} EXPORT_NAME bulkhead)
    set_target_properties(bulkhead_static PROPERTIES EXPORT_NAME static)
    target_link_libraries(bulkhead_shared PRIVATE $<BUILD_INTERFACE:bulkhead_flags>)
    file(GLOB headers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/bulkhead/*.h")
    list(FILTER headers EXCLUDE REGEX "/cuda\\.h$") # of the library below
    set(script "${CMAKE_BINARY_DIR}/bulkhead.map")
    bulkhead_version_script("${script}" ${headers})
    set_target_properties(bulkhead_shared PROPERTIES LINK_DEPENDS "${script}")
    target_link_options(bulkhead_shared PRIVATE "-Wl,--version-script=${script}")
    # The library's threads may outlive a dlclose: it stays loaded.
    target_link_options(bulkhead_shared PRIVATE -Wl,-z,nodelete)
    if(NOT BULKHEAD_SANITIZE)
        target_link_options(bulkhead_shared PRIVATE -Wl,-z,defs)
    endif()
endfunction()

# libbulkhead-cuda: shared, on top of the public library and of libcuda as the CUDA worker finds it.
function(bulkhead_interop_library)
    bulkhead_objects(objects ${ARGN})
    add_library(bulkhead_cuda_shared SHARED ${objects} "${PROJECT_SOURCE_DIR}/src/error/error.c"
                "${PROJECT_SOURCE_DIR}/src/base/plain_text.c" "${PROJECT_SOURCE_DIR}/src/cuda/driver/driver.c")
    add_library(Bulkhead::cuda ALIAS bulkhead_cuda_shared)
    set_target_properties(bulkhead_cuda_shared PROPERTIES
        OUTPUT_NAME bulkhead-cuda VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
        EXPORT_NAME cuda INSTALL_RPATH "$ORIGIN")
    target_include_directories(bulkhead_cuda_shared INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(bulkhead_cuda_shared PUBLIC bulkhead_shared
                          PRIVATE $<BUILD_INTERFACE:bulkhead_flags> ${CMAKE_DL_LIBS})
    # Tensors may outlive a dlclose, and their deleters are here.
    target_link_options(bulkhead_cuda_shared PRIVATE -Wl,-z,nodelete)
    if(NOT BULKHEAD_SANITIZE)
        target_link_options(bulkhead_cuda_shared PRIVATE -Wl,-z,defs)
    endif()
endfunction()

# A program of this project's own components; nothing if its main.c does not exist.
function(bulkhead_program name)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "MAIN;DESTINATION" "COMPONENTS;LIBRARIES")
    set(main "${PROJECT_SOURCE_DIR}/${arg_MAIN}/main.c")
    file(GLOB found CONFIGURE_DEPENDS "${main}")
    if(found)
        bulkhead_objects(objects ${arg_COMPONENTS})
        add_executable(${name} "${main}" ${objects})
        target_link_libraries(${name} PRIVATE bulkhead_flags ${arg_LIBRARIES})
        install(TARGETS ${name} RUNTIME DESTINATION "${arg_DESTINATION}")
    endif()
endfunction()

# The command: all of `directory` and the components named, linked with the public library alone.
function(bulkhead_command name directory)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.c"
         "${PROJECT_SOURCE_DIR}/${directory}/*/*.c")
    if(sources)
        bulkhead_objects(objects ${ARGN})
        add_executable(bulkhead_command ${sources} ${objects})
        # The library itself is loaded by `bulkhead top`: nothing else needs it.
        option(BULKHEAD_CURSES "Build the terminal view of bulkhead top where curses.h is found" ON)
        find_path(BULKHEAD_CURSES_INCLUDE curses.h)
        if(BULKHEAD_CURSES AND BULKHEAD_CURSES_INCLUDE)
            target_compile_definitions(bulkhead_command PRIVATE BULKHEAD_CURSES)
            target_include_directories(bulkhead_command SYSTEM PRIVATE "${BULKHEAD_CURSES_INCLUDE}")
        else()
            message(STATUS "No curses.h: bulkhead top is built without its terminal view")
        endif()
        set_target_properties(bulkhead_command PROPERTIES OUTPUT_NAME ${name})
        target_link_libraries(bulkhead_command PRIVATE bulkhead_flags Bulkhead::bulkhead m)
        file(RELATIVE_PATH up "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
        set_target_properties(bulkhead_command PROPERTIES INSTALL_RPATH "$ORIGIN/${up}")
        install(TARGETS bulkhead_command RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    endif()
endfunction()

# Each .c file directly in `directory` is a program that uses the public library, named after the
# file; files in its support/ directory are linked into all of them. Those named after the prefix
# see the library's inside: they are linked with the static one. The target `directory` builds them;
# `all` does not.
function(bulkhead_public_programs directory prefix)
    add_custom_target(${directory})
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.c")
    file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/support/*.c")
    if(support)
        add_library(bulkhead_${directory}_support OBJECT EXCLUDE_FROM_ALL ${support})
        target_link_libraries(bulkhead_${directory}_support PRIVATE bulkhead_flags)
        set(support $<TARGET_OBJECTS:bulkhead_${directory}_support>)
    endif()
    foreach(source IN LISTS sources)
        get_filename_component(name "${source}" NAME_WE)
        add_executable(${prefix}${name} EXCLUDE_FROM_ALL "${source}" ${support})
        add_dependencies(${directory} ${prefix}${name})
        target_include_directories(${prefix}${name} PRIVATE "${PROJECT_SOURCE_DIR}/${directory}")
        set(library Bulkhead::bulkhead)
        if(name IN_LIST ARGN)
            set(library Bulkhead::static)
        endif()
        if(name STREQUAL "interop")
            list(APPEND library Bulkhead::cuda)
        endif()
        target_link_libraries(${prefix}${name} PRIVATE bulkhead_flags ${library} m ${CMAKE_DL_LIBS})
    endforeach()
endfunction()

# A program without the library that benchmarks are compared with: all of `directory`, with the
# named files of bench/support, and the driver's functions as the CUDA worker finds them.
function(bulkhead_baseline name directory)
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${directory}/*.c")
    list(TRANSFORM ARGN PREPEND "${PROJECT_SOURCE_DIR}/bench/support/")
    list(TRANSFORM ARGN APPEND ".c")
    bulkhead_objects(objects base error)
    add_executable(${name} EXCLUDE_FROM_ALL ${sources} ${ARGN} "${PROJECT_SOURCE_DIR}/src/cuda/driver/driver.c"
                   ${objects})
    add_dependencies(bench ${name})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench")
    target_link_libraries(${name} PRIVATE bulkhead_flags m ${CMAKE_DL_LIBS})
endfunction()

# A benchmark beside loops in plain C: all of `directory`, compiled as a user would compile those loops
# for this machine, with OpenMP where the compiler has it. Its kernels travel in the program.
function(bulkhead_cpu_peers name directory)
    set(root "${PROJECT_SOURCE_DIR}/${directory}")
    file(GLOB sources CONFIGURE_DEPENDS "${root}/*.c")
    file(GLOB kernels CONFIGURE_DEPENDS "${root}/kernels/*")
    add_executable(${name} EXCLUDE_FROM_ALL ${sources} $<TARGET_OBJECTS:bulkhead_bench_support>)
    add_dependencies(bench ${name})
    set_source_files_properties("${root}/texts.c" PROPERTIES OBJECT_DEPENDS "${kernels}")
    target_compile_definitions(${name} PRIVATE PEERS_KERNELS="${root}/kernels")
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/bench")
    # -ffp-contract=fast is gcc's default unless strict C is asked for, as this project does.
    target_compile_options(${name} PRIVATE -O3 -march=native -ffp-contract=fast -Wno-unknown-pragmas)
    target_link_libraries(${name} PRIVATE bulkhead_flags Bulkhead::bulkhead m ${CMAKE_DL_LIBS})
    find_package(OpenMP QUIET COMPONENTS C)
    if(OpenMP_C_FOUND AND NOT BULKHEAD_SANITIZE)
        target_link_libraries(${name} PRIVATE OpenMP::OpenMP_C)
    endif()
endfunction()

# A target that builds every library and program of `directory` and of the directories below it.
function(bulkhead_target_for_all name directory)
    set(found "")
    set(directories "${directory}")
    while(directories)
        list(POP_FRONT directories next)
        get_property(below DIRECTORY "${next}" PROPERTY SUBDIRECTORIES)
        get_property(targets DIRECTORY "${next}" PROPERTY BUILDSYSTEM_TARGETS)
        list(APPEND directories ${below})
        foreach(target IN LISTS targets)
            get_target_property(type ${target} TYPE)
            if(NOT type MATCHES "^(UTILITY|INTERFACE_LIBRARY)$")
                list(APPEND found ${target})
            endif()
        endforeach()
    endwhile()
    add_custom_target(${name} DEPENDS ${found})
endfunction()
